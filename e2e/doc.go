// Package e2e tests Fairlead end to end: its real manifests and binaries on a
// real control plane, installed and called the way users do.
package e2e

// Package beside runs Longhorn's own manager in a sandbox: its controllers, its webhooks
// and its driver deployer, unmodified. Fairlead is installed beside it, or not.
//
// Everything has to run in a machine of its own, see Machine.
package beside

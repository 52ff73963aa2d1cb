// Package registration has the webhook configurations and admission policies, from which the manifests are generated.
package registration

// Package test compares the Helm chart with the manifests of kustomize, object by object. It is a module of its own,
// since Helm's library would bring its dependencies into the program's go.mod.
package test

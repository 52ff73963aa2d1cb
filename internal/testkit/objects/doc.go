// Package objects builds Kubernetes' and Longhorn's objects for tests, as those systems
// make them. Functions change what a test needs otherwise.
package objects

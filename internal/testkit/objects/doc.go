// Package objects builds Kubernetes' and Longhorn's objects for tests, as the real systems
// do. A test changes objects with functions.
package objects

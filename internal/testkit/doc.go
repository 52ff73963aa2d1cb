// Package testkit is what tests of controllers and readers share: a recorder of events, a
// clock, metrics, and helpers around the fake API of package fakeapi. Package objects builds
// objects. Both import no reader or controller, so that the tests of all packages may use them.
package testkit

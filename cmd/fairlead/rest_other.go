//go:build !linux

package main

// unmapCode is for Linux, where Fairlead is deployed.
func unmapCode() {}

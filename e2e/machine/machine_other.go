//go:build !linux

package machine

// Unavailable says why there can be no machine here.
func Unavailable() string { return "it needs Linux" }

// Run is for Linux.
func Run(Spec, func() int) int { panic("machine: " + Unavailable()) }

//go:build !linux

package machine

import (
	"errors"
	"net"
)

// Unavailable says why there can be no machine here.
func Unavailable() string { return "it needs Linux" }

// Run is for Linux.
func Run(Spec, func() int) int { panic("machine: " + Unavailable()) }

// Listener is for Linux.
func Listener() (net.Listener, error) { return nil, errors.New(Unavailable()) }

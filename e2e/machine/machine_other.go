//go:build !linux

package machine

import (
	"errors"
	"net"
)

// Unavailable says why there can be no machine here.
func Unavailable() string { return "it needs Linux" }

// Apart is for Linux.
type Apart struct{}

// NewApart is for Linux.
func NewApart(Spec) (*Apart, error) { return nil, errors.New(Unavailable()) }

// Path is for Linux.
func (*Apart) Path() string { return "" }

// Listen is for Linux.
func (*Apart) Listen(string) (net.Listener, error) { return nil, errors.New(Unavailable()) }

// Dial is for Linux.
func (*Apart) Dial(string) (net.Conn, error) { return nil, errors.New(Unavailable()) }

// Run is for Linux.
func Run(Spec, func() int) int { panic("machine: " + Unavailable()) }

// Listener is for Linux.
func Listener() (net.Listener, error) { return nil, errors.New(Unavailable()) }

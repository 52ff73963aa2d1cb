//go:build !linux

package machine

import "errors"

// Pause needs Linux.
func Pause(int) error { return errors.New("pausing a process needs Linux") }

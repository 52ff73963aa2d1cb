//go:build unix

package rpc

import (
	"errors"
	"syscall"
)

// shareLocalPort lets connections to different servers have the same local port.
func shareLocalPort(_, _ string, raw syscall.RawConn) error {
	var option error
	err := raw.Control(func(fd uintptr) {
		option = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	return errors.Join(err, option)
}

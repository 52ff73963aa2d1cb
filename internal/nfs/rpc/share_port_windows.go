package rpc

import "syscall"

// shareLocalPort does nothing: on Windows, people use the command line, and nothing probes servers.
func shareLocalPort(_, _ string, _ syscall.RawConn) error { return nil }

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketPath is the longest path of a Unix socket in bytes (unix(7): 108 with the final zero).
const maxSocketPath = 107

// ParseEndpoint reads an endpoint as --csi-endpoint has it, unix:///path/csi.sock, and
// returns the path.
func ParseEndpoint(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		return "", fmt.Errorf("endpoint %q is no Unix socket: write unix:///path/csi.sock", endpoint)
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return "", fmt.Errorf("endpoint %q has no clean absolute path: write unix:///path/csi.sock, with three slashes", endpoint)
	}
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("endpoint %q has a path of %d bytes, and a socket allows %d: write a shorter path", endpoint, len(path), maxSocketPath)
	}
	return path, nil
}

// listen creates the socket. It replaces an old socket, but no other file. Only root may connect. remove removes the file if no
// successor has replaced it.
func listen(path string) (listener net.Listener, remove func(), err error) {
	if have, err := os.Lstat(path); err == nil {
		if have.Mode().Type() != fs.ModeSocket {
			return nil, nil, fmt.Errorf("%s exists and is no socket: remove it, or choose another path", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("removing the socket of an earlier process: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, nil, fmt.Errorf("making the directory of the socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, fmt.Errorf("listening: %w", err)
	}
	l.SetUnlinkOnClose(false) // it may be a successor's by then
	own, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("listening: %w", err)
	}
	return l, func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, own) {
			_ = os.Remove(path)
		}
	}, nil
}

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

// Socket is a Unix socket that removes its file only while the file is its own.
type Socket struct {
	net.Listener
	path string
	file os.FileInfo
}

// Listen creates the socket. It replaces an old socket, but no other file. Only root may connect.
func Listen(path string) (*Socket, error) {
	if have, err := os.Lstat(path); err == nil {
		if have.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s exists and is no socket: remove it, or choose another path", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing the socket of an earlier process: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the directory of the socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	// A successor may have replaced the file by the time this process ends.
	l.SetUnlinkOnClose(false)
	file, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &Socket{Listener: l, path: path, file: file}, nil
}

// Present reports whether the file is there and is this socket's.
func (s *Socket) Present() bool {
	file, err := os.Lstat(s.path)
	return err == nil && os.SameFile(file, s.file)
}

// Replaced reports whether another file has taken the path.
func (s *Socket) Replaced() bool {
	file, err := os.Lstat(s.path)
	return err == nil && !os.SameFile(file, s.file)
}

// Close stops listening, and removes the file if it is this socket's.
func (s *Socket) Close() error {
	present := s.Present()
	err := s.Listener.Close()
	if present {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

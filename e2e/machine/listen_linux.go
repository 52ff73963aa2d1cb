package machine

import (
	"fmt"
	"net"
	"os"
)

// listenerFile is the first file that a process is given beside its standard ones.
const listenerFile = 3

// listen opens a socket of the real machine. A socket stays in the network that it was made in.
func listen(address string) (*os.File, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return listener.(*net.TCPListener).File()
}

// Listener takes the connections of Spec.Listen. It is called inside, once.
func Listener() (net.Listener, error) {
	file := os.NewFile(listenerFile, "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("taking connections of the real machine: %w", err)
	}
	return listener, nil
}

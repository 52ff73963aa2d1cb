package machine

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart is one more network in a machine, with the same addresses: programs that listen
// on the same port run side by side. Nothing passes from one to the other by itself.
type Apart struct {
	thread int
	tasks  chan func()
}

// NewApart makes a network. It stays until the process ends.
func NewApart(spec Spec) (*Apart, error) {
	a := &Apart{tasks: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread belongs to the network
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = makeNetwork(spec)
		}
		a.thread = unix.Gettid()
		made <- err
		for task := range a.tasks {
			task()
		}
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("making a network apart: %w", err)
	}
	return a, nil
}

// Path is the network for nsenter.
func (a *Apart) Path() string { return fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), a.thread) }

// Listen listens there.
func (a *Apart) Listen(address string) (listener net.Listener, err error) {
	a.do(func() { listener, err = net.Listen("tcp", address) })
	return listener, err
}

// Dial connects to an address there. A socket stays in the network that it was made in.
func (a *Apart) Dial(address string) (connection net.Conn, err error) {
	a.do(func() { connection, err = net.Dial("tcp", address) })
	return connection, err
}

func (a *Apart) do(task func()) {
	done := make(chan struct{})
	a.tasks <- func() { defer close(done); task() }
	<-done
}

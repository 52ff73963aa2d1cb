package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// agentSocket is in the folder that a node shares with the containers of its CSI plugins.
const agentSocket = "/var/lib/kubelet/nfsmount.sock"

// askAgent has the node's agent mount.
func askAgent(args []string) error {
	conn, err := net.Dial("unix", agentSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(args); err != nil {
		return err
	}
	said, err := bufio.NewReader(conn).ReadString('\n')
	switch {
	case err != nil:
		return fmt.Errorf("the node's agent does not answer: %w", err)
	case said != "\n":
		return errors.New(strings.TrimSpace(said))
	}
	return nil
}

// runAgent mounts what containers of the node ask for, in the node's mount namespace and with
// sockets in the caller's network namespace. The mounts outlive caller and agent. The agent runs
// in the node's pid, mount and network namespace.
func runAgent() error {
	if err := os.Remove(agentSocket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", agentSocket)
	if err != nil {
		return err
	}
	if err := os.Chmod(agentSocket, 0o600); err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			message := ""
			if err := serveCaller(conn.(*net.UnixConn)); err != nil {
				log.Println(err)
				message = strings.ReplaceAll(err.Error(), "\n", " ")
			}
			_, _ = fmt.Fprintln(conn, message)
		}()
	}
}

func serveCaller(conn *net.UnixConn) error {
	pid, err := peer(conn)
	if err != nil {
		return err
	}
	var args []string
	if err := json.NewDecoder(conn).Decode(&args); err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("the caller sends no arguments")
	}
	_, target, _, err := arguments(args[1:])
	if err != nil {
		return err
	}
	if err := sameFolder(pid, target); err != nil {
		return err
	}
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer network.Close()
	type started struct {
		process *os.Process
		ready   func() error
		err     error
	}
	result := make(chan started)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the network that it is in
		if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- started{err: err}
			return
		}
		daemon, ready, err := startDaemon(args)
		if err != nil {
			result <- started{err: err}
			return
		}
		result <- started{process: daemon.Process, ready: ready}
		_ = daemon.Wait()
	}()
	s := <-result
	if s.err != nil {
		return s.err
	}
	ready := make(chan error, 1)
	go func() { ready <- s.ready() }()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(gone)
	}()
	select {
	case err := <-ready:
		return err
	case <-gone: // as a mount(2) ends whose caller is killed
		_ = s.process.Kill()
		return fmt.Errorf("the caller has gone before %s was mounted", target)
	}
}

// peer is the caller's process, as it is seen from here.
func peer(conn *net.UnixConn) (int32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	if outer := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); outer != nil {
		return 0, outer
	}
	if err != nil {
		return 0, err
	}
	if credentials.Pid == 0 {
		return 0, errors.New("the caller is not in a pid namespace of this node")
	}
	return credentials.Pid, nil
}

// sameFolder makes sure that the caller means the node's folder by the target.
func sameFolder(pid int32, target string) error {
	var callers, nodes syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d/root%s", pid, target), &callers); err != nil {
		return fmt.Errorf("the caller's %s: %w", target, err)
	}
	if err := syscall.Stat(target, &nodes); err != nil {
		return fmt.Errorf("the node's %s: %w", target, err)
	}
	if callers.Dev != nodes.Dev || callers.Ino != nodes.Ino {
		return fmt.Errorf("%s is another folder on the node", target)
	}
	return nil
}

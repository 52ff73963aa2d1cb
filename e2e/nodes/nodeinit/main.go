//go:build linux

// Command nodeinit is the first process of a node of package nodes. It makes the node's folders and links, keeps its
// services running, and takes care of processes whose parents have ended. What runs on the node ends with it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Node is described by package nodes, in JSON on the standard input. The input ends when the node has its links.
type Node struct {
	Name string
	// Folders of the node by path, and Files that hide those of the machine.
	Folders, Files map[string]string
	// Empty are folders in memory.
	Empty    []string
	Commands [][]string
	Services []Service
	// Logs is the folder for the output of services.
	Logs string
}

// Service is started again when it ends.
type Service struct {
	Name    string
	Command []string
}

// restartDelay of services, as of an ordinary init.
const restartDelay = time.Second

func main() {
	log.SetFlags(log.Ltime)
	if os.Getpid() != 1 {
		log.Fatal("nodeinit is the first process of a node; package nodes starts it")
	}
	var node Node
	input, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(input, &node)
	}
	if err == nil {
		err = node.boot()
	}
	if err != nil {
		log.Fatal("starting the node: ", err)
	}
	node.run()
}

func (n Node) boot() error {
	if err := syscall.Sethostname([]byte(n.Name)); err != nil {
		return err
	}
	// The machine does not see the node's mounts; the node sees those that its pods pass on.
	for _, propagation := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("making mounts of the node its own: %w", err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, folder := range n.Empty {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting %s: %w", folder, err)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(n.Folders)) {
		if err := bind(n.Folders[at], at, os.MkdirAll(at, 0o755)); err != nil {
			return err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(n.Files)) {
		if err := bind(n.Files[at], at, nil); err != nil {
			return err
		}
	}
	for _, command := range n.Commands {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w: %s", command, err, out)
		}
	}
	return nil
}

func bind(from, at string, made error) error {
	if made != nil {
		return made
	}
	if err := syscall.Mount(from, at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("showing %s at %s: %w", from, at, err)
	}
	return nil
}

func (n Node) run() {
	var mu sync.Mutex // held while a service starts: its end is not noticed before its pid is known
	running := map[int]Service{}
	var start func(Service)
	start = func(s Service) {
		mu.Lock()
		defer mu.Unlock()
		pid, err := s.start(n.Logs)
		if err != nil {
			log.Printf("starting %s: %v", s.Name, err)
			time.AfterFunc(restartDelay, func() { start(s) })
			return
		}
		running[pid] = s
	}
	for _, s := range n.Services {
		start(s)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.ECHILD {
			time.Sleep(restartDelay) // nothing runs: a service is started again meanwhile
		}
		mu.Lock()
		s, known := running[pid]
		delete(running, pid)
		mu.Unlock()
		if known {
			log.Printf("%s has ended with status %#x, and is started again", s.Name, status)
			time.AfterFunc(restartDelay, func() { start(s) })
		}
	}
}

func (s Service) start(logs string) (int, error) {
	out, err := os.OpenFile(filepath.Join(logs, s.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	program, err := exec.LookPath(s.Command[0])
	if err != nil {
		return 0, err
	}
	process, err := os.StartProcess(program, s.Command, &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{nil, out, out}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	return process.Pid, nil
}

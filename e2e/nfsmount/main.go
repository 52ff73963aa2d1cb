// nfsmount is a mount.nfs for tests: a client of NFSv3 and NFSv4.1 in FUSE, for machines
// whose kernel has none. mount(8) finds it as /sbin/mount.nfs. README.md says how it differs.
//
// A mount lives as long as its process, which is in a session of its own and outlives its
// caller. A container, which ends with all its processes, asks "nfsmount agent" of its node.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// daemonVariable is set in the process that serves a mount.
const daemonVariable = "FAIRLEAD_NFSMOUNT_DAEMON"

// failed is the status of mount(8) for "mount failure".
const failed = 32

func main() {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		log.Fatal(runAgent())
	}
	source, target, options, err := arguments(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mount.nfs:", err)
		os.Exit(1)
	}
	if os.Getenv(daemonVariable) != "" {
		serve(source, target, options)
		return
	}
	if err := front(); err != nil {
		fmt.Fprintln(os.Stderr, "mount.nfs:", err)
		os.Exit(failed)
	}
}

// arguments are SOURCE TARGET [-o OPTIONS] and flags without a meaning here.
func arguments(args []string) (source, target, options string, err error) {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-o" && i+1 < len(args):
			i++
			options = args[i]
		case strings.HasPrefix(args[i], "-"):
		default:
			rest = append(rest, args[i])
		}
	}
	if len(rest) != 2 {
		return "", "", "", errors.New("usage: mount.nfs SOURCE TARGET [-o OPTIONS]")
	}
	return rest[0], rest[1], options, nil
}

// front mounts by the node's agent, where there is one, or by a process of its own.
func front() error {
	args, err := withAddress(os.Args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(agentSocket); err == nil {
		return askAgent(args)
	}
	_, ready, err := startDaemon(args)
	if err != nil {
		return err
	}
	return ready()
}

// startDaemon starts the process that serves the mount, and returns what waits until it is mounted.
func startDaemon(args []string) (*exec.Cmd, func() error, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer write.Close()
	log, err := os.OpenFile(os.TempDir()+"/nfsmount.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	daemon := &exec.Cmd{Path: "/proc/self/exe", Args: args, Env: append(os.Environ(), daemonVariable+"=1"), Dir: "/"}
	daemon.Stdout, daemon.Stderr, daemon.ExtraFiles = log, log, []*os.File{write}
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return nil, nil, err
	}
	return daemon, func() error {
		defer read.Close()
		said, err := bufio.NewReader(read).ReadString('\n')
		switch {
		case err == io.EOF:
			return errors.New("the mount's process has ended")
		case err != nil:
			return err
		case said != "\n":
			return errors.New(strings.TrimSpace(said))
		}
		return nil
	}, nil
}

// mountTimeout is for the answers to a mount.
const mountTimeout = 10 * time.Second

func serve(source, target, options string) {
	front := os.NewFile(3, "front")
	share, err := start(source, target, options)
	if err != nil {
		fmt.Fprintln(front, strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(failed)
	}
	fmt.Fprintln(front)
	_ = front.Close()
	log.Println("mounted", source, "on", target)
	if err := waitForEnd(); err != nil {
		log.Fatal(err)
	}
	log.Println("unmounted", target)
	share.leave()
}

// waitForEnd waits until the kernel ends the mount, also while calls wait for the server.
func waitForEnd() error {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, link := range links {
		if name, _ := os.Readlink(link); name != "/dev/fuse" {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			return err
		}
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, -1) // errors only
			if n > 0 || err != nil && err != syscall.EINTR {
				return err
			}
		}
	}
	return errors.New("there is no connection to FUSE")
}

// connect makes a share of the version that the options name.
func connect(ctx context.Context, path string, o mountOptions) (share, handle, error) {
	nfs := newTransport(net.JoinHostPort(o.address, o.port), o.timeout, o.soft && o.version == 3, o.reserved)
	if o.version == 4 {
		return newV4(ctx, nfs, path, o)
	}
	root, err := mount(ctx, newTransport(net.JoinHostPort(o.address, o.mountPort), o.timeout, true, o.reserved), path)
	if err != nil {
		return nil, nil, err
	}
	c := &v3{nfs: nfs}
	if _, e := c.getattr(ctx, root); e != 0 {
		return nil, nil, e
	}
	return c, root, nil
}

func start(source, target, options string) (share, error) {
	version := 3
	if strings.HasSuffix(os.Args[0], "nfs4") {
		version = 4
	}
	o, err := parseOptions(options, version)
	if err != nil {
		return nil, err
	}
	_, path, err := splitSource(source)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), mountTimeout)
	defer cancel()
	share, root, err := connect(ctx, path, o)
	if err != nil && ctx.Err() != nil || errors.Is(err, errTimeout) {
		return nil, errors.New("Connection timed out")
	}
	if err != nil {
		return nil, fmt.Errorf("mounting %s failed: %w", source, err)
	}
	second, never := time.Second, time.Duration(0)
	_, err = fs.Mount(target, &node{share: share, handle: root}, &fs.Options{
		// Names are looked up at every use: an open sees what another client has closed before.
		EntryTimeout: &never, AttrTimeout: &second,
		MountOptions: fuse.MountOptions{
			FsName: source, Name: "nfs", AllowOther: true, MaxWrite: 1 << 20, DisableXAttrs: true,
			DirectMountStrict: true, DirectMountFlags: syscall.MS_MGC_VAL | o.flags, Options: []string{"default_permissions"},
		},
	})
	if err != nil {
		share.leave()
		return nil, err
	}
	return share, nil
}

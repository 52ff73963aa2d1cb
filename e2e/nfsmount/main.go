// nfsmount is a mount.nfs for tests: an NFSv3 client in FUSE, for machines whose
// kernel has none. mount(8) finds it as /sbin/mount.nfs. A mount lives as long as
// its process, which is in a session of its own and outlives its caller.
//
// It connects as the kernel's client does (see transport), and does not lock.
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
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// daemonVariable is set in the process that serves a mount.
const daemonVariable = "FAIRLEAD_NFSMOUNT_DAEMON"

// failed is the status of mount(8) for "mount failure".
const failed = 32

func main() {
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

// front starts the process that serves the mount and waits until it is mounted.
func front() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(os.TempDir()+"/nfsmount.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	daemon := exec.Command("/proc/self/exe", os.Args[1:]...)
	daemon.Env = append(os.Environ(), daemonVariable+"=1")
	daemon.Stdout, daemon.Stderr, daemon.ExtraFiles = log, log, []*os.File{write}
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return err
	}
	_ = write.Close()
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
}

// mountTimeout is for the answer of a server that is there.
const mountTimeout = 10 * time.Second

func serve(source, target, options string) {
	front := os.NewFile(3, "front")
	server, err := start(source, target, options)
	if err != nil {
		fmt.Fprintln(front, strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(failed)
	}
	fmt.Fprintln(front)
	_ = front.Close()
	log.Println("mounted", source, "on", target)
	server.Wait()
	log.Println("unmounted", target)
}

func start(source, target, options string) (*fuse.Server, error) {
	o, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	host, share, err := splitSource(source)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), mountTimeout)
	defer cancel()
	root, err := mount(ctx, newTransport(net.JoinHostPort(host, o.mountPort), o.timeout, true), share)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTimeout) {
		return nil, errors.New("Connection timed out")
	}
	if err != nil {
		return nil, fmt.Errorf("mounting %s failed: %w", source, err)
	}
	c := &client{nfs: newTransport(net.JoinHostPort(host, o.port), o.timeout, o.soft)}
	if _, e := c.getattr(ctx, root); e != 0 {
		return nil, fmt.Errorf("mounting %s failed: %w", source, e)
	}
	second := time.Second
	return fs.Mount(target, &node{client: c, handle: root}, &fs.Options{
		EntryTimeout: &second, AttrTimeout: &second,
		MountOptions: fuse.MountOptions{
			FsName: source, Name: "nfs", AllowOther: true, MaxWrite: 1 << 20, DisableXAttrs: true,
			DirectMountStrict: true, DirectMountFlags: syscall.MS_MGC_VAL | o.flags, Options: []string{"default_permissions"},
		},
	})
}

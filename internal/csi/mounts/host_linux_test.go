package mounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// command puts a script in place of mount and umount.
func command(t *testing.T, script string) {
	dir := t.TempDir()
	for _, name := range []string{"mount", "umount"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestCommandsGetTheirArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "args")
	command(t, `echo "$(basename $0) $*" >>`+file)
	h, ctx := &Host{}, context.Background()
	for _, err := range []error{h.Mount(ctx, "10.0.0.1:/a b", "/t", []string{"vers=3", "ro"}), h.Mount(ctx, "s", "/t", nil), h.Unmount(ctx, "/t", false), h.Unmount(ctx, "/t", true)} {
		if err != nil {
			t.Error(err)
		}
	}
	got, _ := os.ReadFile(file)
	if want := "mount -t nfs -o vers=3,ro 10.0.0.1:/a b /t\nmount -t nfs s /t\numount -c -i /t\numount -f -c -i /t\n"; string(got) != want {
		t.Errorf("%s", got)
	}
}

// mount(8) runs mount.nfs, and it is that which waits for the server.
func TestDeadlineKillsAllThatMountStarted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "(exec 3>"+fifo+"; sleep 600)\n")
	ctx, cancel := context.WithCancel(context.Background())
	opened := make(chan *os.File)
	go func() {
		f, _ := os.Open(fifo) // waits until the child of mount has opened the other end
		cancel()
		opened <- f
	}()
	err := (&Host{}).Mount(ctx, "s", "/t", nil)
	if !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	f := <-opened
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := f.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the child of mount still runs: %v", err)
	}
}

func TestFailureOfMountIsRecognized(t *testing.T) {
	for text, want := range map[string]error{
		"mount.nfs: access denied by server while mounting 10.0.0.1:/x":                                    ErrDenied,
		"mount.nfs: Operation not permitted for 10.0.0.1:/x on /t":                                         ErrDenied,
		"mount.nfs: an incorrect mount option was specified for /t":                                        ErrInvalid,
		"mount.nfs: Protocol not supported for 10.0.0.1:/x on /t":                                          ErrInvalid,
		"mount: /t: unknown filesystem type nfs":                                                           ErrInvalid,
		"mount.nfs: mounting 10.0.0.1:/x failed, reason given by server: No such file or directory":        ErrNoExport,
		"mount.nfs: Connection refused for 10.0.0.1:/x on /t":                                              ErrUnreachable,
		"mount.nfs: Connection timed out for 10.0.0.1:/x on /t":                                            ErrUnreachable,
		"umount: /t: not mounted.":                                                                         ErrNotMounted,
		"umount: /t: target is busy.":                                                                      nil,
		"mount.nfs: rpc.statd is not running but is required for remote locking.\nUse '-o nolock' to keep": ErrNoLocks,
	} {
		command(t, fmt.Sprintf("cat >&2 <<'END'\n%s\nEND\nexit 32", text))
		err := (&Host{}).Mount(context.Background(), "s", "/t", nil)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), strings.Fields(text)[2]) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if err := (&Host{}).Mount(context.Background(), "s", "/t", nil); err == nil || !strings.Contains(err.Error(), "nfs-common") {
		t.Error(err)
	}
}

func TestStatfsTellsUsage(t *testing.T) {
	h := &Host{}
	u, err := h.Statfs(context.Background(), t.TempDir())
	if err != nil || u.Bytes == 0 || u.BytesFree > u.Bytes || u.BytesAvailable > u.BytesFree {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := h.Statfs(context.Background(), "/none"); !errors.Is(err, os.ErrNotExist) || IsDead(err) {
		t.Error(err)
	}
}

func TestChmodSetsTheMode(t *testing.T) {
	dir := t.TempDir()
	if err := (&Host{}).Chmod(context.Background(), dir, 0o2770); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode() != os.ModeDir|os.ModeSetgid|0o770 {
		t.Error(info.Mode())
	}
}

func TestHungCallsShareOneThread(t *testing.T) {
	var c calls
	var started atomic.Int32
	release := make(chan struct{})
	hang := func() (any, error) {
		started.Add(1)
		<-release
		return 7, nil
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		if _, err := c.do(ended, "a", hang); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
	}
	if _, err := c.do(context.Background(), "b", func() (any, error) { return nil, nil }); err != nil {
		t.Error(err)
	}
	close(release)
	if v, err := c.do(context.Background(), "a", hang); v != 7 || err != nil {
		t.Error(v, err)
	}
	if n := started.Load(); n > 2 {
		t.Errorf("%d calls", n)
	}
}

func TestDeadIsWhatNeverComesBack(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ESTALE: true, syscall.ENOTCONN: true, syscall.ECONNABORTED: true, syscall.EIO: false, syscall.EACCES: false, ErrTimeout: false, nil: false,
	} {
		if IsDead(fmt.Errorf("statfs: %w", &os.PathError{Err: err})) != want && err != nil {
			t.Errorf("%v: want %t", err, want)
		}
	}
}

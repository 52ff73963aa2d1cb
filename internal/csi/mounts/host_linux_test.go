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
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// command puts a script in place of mount and umount.
func command(t *testing.T, script string) {
	dir := t.TempDir()
	for _, name := range []string{"mount", "umount"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
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
	must.Equal(t, string(got), "mount -t nfs -o vers=3,ro 10.0.0.1:/a b /t\nmount -t nfs s /t\numount -c -i /t\numount -f -c -i /t\n", "%s", got)
}

// mount(8) runs mount.nfs, and it is that which waits for the server.
func TestDeadlineKillsAllThatMountStarted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
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
		"mount.nfs: access denied by server while mounting 10.0.0.1:/x":                                                       ErrDenied,
		"mount.nfs: Operation not permitted for 10.0.0.1:/x on /t":                                                            ErrDenied,
		"mount.nfs: an incorrect mount option was specified for /t":                                                           ErrInvalid,
		"mount.nfs: Protocol not supported for 10.0.0.1:/x on /t":                                                             ErrInvalid,
		"mount: /t: unknown filesystem type nfs":                                                                              ErrNoNFS,
		"mount: /t: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.": ErrNoNFS,
		"mount.nfs: No such device":                                                                                           ErrNoNFS,
		"mount.nfs: Key has expired for 10.0.0.1:/x on /t":                                                                    ErrNoKey,
		"mount.nfs: Required key not available for 10.0.0.1:/x on /t":                                                         ErrNoKey,
		"mount.nfs: mounting 10.0.0.1:/x failed, reason given by server: No such file or directory":                           ErrNoExport,
		"mount.nfs: Connection refused for 10.0.0.1:/x on /t":                                                                 ErrUnreachable,
		"mount.nfs: Connection timed out for 10.0.0.1:/x on /t":                                                               ErrUnreachable,
		"umount: /t: not mounted.":                                                                                            ErrNotMounted,
		"umount: /t: target is busy.":                                                                                         nil,
		"mount.nfs: rpc.statd is not running but is required for remote locking.\nUse '-o nolock' to keep":                    ErrNoLocks,
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
	h, dir := &Host{}, t.TempDir()
	u, err := h.Statfs(context.Background(), dir)
	var s unix.Statfs_t
	must.Do(t, unix.Statfs(dir, &s))
	if err != nil || u.Bytes != int64(s.Blocks)*s.Frsize || u.Inodes != int64(s.Files) || u.BytesFree > u.Bytes || u.BytesAvailable > u.BytesFree || u.InodesFree > u.Inodes {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := h.Statfs(context.Background(), "/none"); err == nil || errors.Is(err, ErrDead) {
		t.Error(err)
	}
	for _, text := range []string{"", "1 2", "a b c d e f"} {
		if _, err := parseUsage(text); err == nil {
			t.Errorf("%q is no usage", text)
		}
	}
}

func TestChmodSetsTheMode(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, (&Host{}).Chmod(context.Background(), dir, 0o2770))
	if info, _ := os.Stat(dir); info.Mode() != os.ModeDir|os.ModeSetgid|0o770 {
		t.Error(info.Mode())
	}
}

func TestHungCallsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{}
		var started atomic.Int32
		release := make(chan struct{})
		hang := func() (any, error) {
			started.Add(1)
			<-release
			return "7", nil
		}
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := h.once(ctx, "a", hang); !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
			cancel()
		}
		if _, err := h.once(t.Context(), "b", func() (any, error) { return "", nil }); err != nil {
			t.Error(err)
		}
		result := make(chan any)
		go func() {
			v, _ := h.once(t.Context(), "a", hang)
			result <- v
		}()
		synctest.Wait()
		close(release)
		if v := <-result; v != "7" || started.Load() != 1 {
			t.Errorf("%v after %d calls", v, started.Load())
		}
		if v, err := h.once(t.Context(), "a", hang); v != "7" || err != nil || started.Load() != 2 {
			t.Errorf("%v, %v after %d calls: a call that has ended is repeated", v, err, started.Load())
		}
	})
}

func TestDeadIsWhatNeverComesBack(t *testing.T) {
	for text, want := range map[string]bool{
		"stat: cannot read file system information for '/t': Stale file handle":                   true,
		"stat: cannot read file system information for '/t': Transport endpoint is not connected": true,
		"stat: can't read file system information for '/t': Socket not connected":                 true,
		"stat: cannot read file system information for '/t': Software caused connection abort":    true,
		"stat: cannot read file system information for '/t': Input/output error":                  false,
		"stat: cannot read file system information for '/t': Permission denied":                   false,
	} {
		must.Equal(t, errors.Is(kindOf(text), ErrDead), want, "%s", text)
	}
}

func TestSharedSuperblockIsSeen(t *testing.T) {
	list := []Mount{{Target: "/a", Minor: 1}, {Target: "/b", Minor: 2}, {Target: "/c", Minor: 1}}
	if other, ok := Shares(list, list[0]); !ok || other.Target != "/c" {
		t.Error(other, ok)
	}
	if other, ok := Shares(list, list[1]); ok {
		t.Error(other)
	}
}

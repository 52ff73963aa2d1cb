package csinode

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// fairlead is the binary that is tested.
var fairlead = cmp.Or(os.Getenv("FAIRLEAD_BINARY"), program("fairlead"))

func TestShareIsMountedAndUnmounted(t *testing.T) {
	s, p := newServer(t), newPlugin(t)
	for range 3 {
		p.must(p.publish(s, "pod", "read_ahead_kb=1024", "noexec"))
	}
	p.end(syscall.SIGKILL) // the mount outlives the plugin
	p.start()
	p.must(p.publish(s, "pod", "read_ahead_kb=1024", "noexec"))
	list := mounted(t)
	if len(list) != 1 || list[0].Source != s.address+":/export" {
		t.Fatalf("%+v", list)
	}
	if kb, err := (&mounts.Host{}).ReadAhead(list[0]); kb != 1024 || err != nil {
		t.Errorf("read-ahead %d, %v", kb, err)
	}
	p.must(os.WriteFile(filepath.Join(target("pod"), "file"), []byte("bytes"), 0o600))
	if text, err := os.ReadFile(filepath.Join(s.folder, "file")); string(text) != "bytes" {
		t.Errorf("the server has %q, %v", text, err)
	}
	if got, err := p.stats("pod"); err != nil || got.GetVolumeCondition().GetAbnormal() || got.GetUsage()[0].GetTotal() == 0 {
		t.Errorf("%v, %v", got, err)
	}
	other := newServer(t)
	if err := p.publish(other, "pod"); status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), s.address) {
		t.Error(err)
	}
	if err := p.publish(s, "denied", "port=1"); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	p.must(p.unpublish("pod"))
	p.must(p.unpublish("pod"))
	nothing(t, "pod")
}

func TestHungServerBlocksNoOtherVolume(t *testing.T) {
	s, other, p := newServer(t), newServer(t), newPlugin(t)
	p.must(p.publish(s, "hung"))
	p.must(machine.Pause(s.Process.Pid))
	defer s.signal(t, syscall.SIGCONT)
	began := time.Now()
	result := make(chan string)
	for range 4 {
		go func() {
			got, err := p.stats("hung")
			result <- status.Code(err).String() + " " + got.GetVolumeCondition().GetMessage()
		}()
	}
	p.must(p.publish(other, "works"))
	p.must(p.unpublish("works"))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("another server's volume took %s", took)
	}
	p.must(p.publish(s, "hung")) // the mount waits for its server, as it should
	for range 4 {
		if got := <-result; !strings.Contains(got, "OK") || !strings.Contains(got, "has not answered") {
			t.Error(got)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stats of a hung server took %s", took)
	}
	began = time.Now()
	p.must(p.unpublish("hung"))
	t.Logf("unmounted from a hung server in %s", time.Since(began).Round(time.Millisecond))
	nothing(t, "hung")
}

func TestMountFromSilentServerEnds(t *testing.T) {
	s, p := newServer(t), newPlugin(t, "--mount-timeout=2s")
	p.must(machine.Pause(s.Process.Pid))
	err := p.publish(s, "pod")
	if c := status.Code(err); c != codes.DeadlineExceeded {
		t.Error(err)
	}
	s.signal(t, syscall.SIGCONT)
	p.must(p.publish(s, "pod"))
	p.must(p.unpublish("pod"))
	nothing(t, "pod")
}

func TestDeadMountIsReplaced(t *testing.T) {
	s, p := newServer(t), newPlugin(t)
	for _, repair := range []func() error{func() error { return p.publish(s, "pod") }, func() error { return nil }} {
		p.must(p.publish(s, "pod"))
		for _, pid := range daemons(t, s) {
			p.must(syscall.Kill(pid, syscall.SIGKILL))
		}
		wait(t, "the mount's death", func() bool {
			got, err := p.stats("pod")
			return err == nil && got.GetVolumeCondition().GetAbnormal() && strings.Contains(got.GetVolumeCondition().GetMessage(), "delete the pod")
		})
		p.must(repair())
		if err := os.WriteFile(filepath.Join(target("pod"), "again"), nil, 0o600); err != nil && repair() != nil {
			t.Error(err)
		}
		p.must(p.unpublish("pod"))
		nothing(t, "pod")
	}
}

// Whenever the plugin is killed, the kubelet's retry or its clean-up leaves no mount.
func TestKilledPluginLeaksNoMount(t *testing.T) {
	s, p := newServer(t), newPlugin(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		done := make(chan error, 1)
		go func() {
			if i%2 == 0 {
				done <- p.publish(s, "pod", "read_ahead_kb=64")
			} else {
				done <- p.unpublish("pod")
			}
		}()
		time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond) // a random step of the operation
		p.end(syscall.SIGKILL)
		<-done
		p.start()
		if i%4 < 2 {
			p.must(p.publish(s, "pod", "read_ahead_kb=64"))
			list := mounted(t)
			if len(list) != 1 {
				t.Fatalf("%+v", list)
			}
			if kb, err := (&mounts.Host{}).ReadAhead(list[0]); kb != 64 || err != nil {
				t.Errorf("read-ahead %d, %v", kb, err)
			}
		}
	}
	wait(t, "mounts that were begun", func() bool { return len(daemons(t, s)) <= 1 })
	p.must(p.unpublish("pod"))
	nothing(t, "pod")
}

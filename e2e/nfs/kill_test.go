package nfs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

const lease = "fairlead-csi-controller"

// leader is the controller that leads.
func (c *Cluster) leader(ctx context.Context) (*sandbox.Replica, error) {
	var leader *sandbox.Replica
	err := c.wait(ctx, func(ctx context.Context) (bool, error) {
		for _, r := range c.Controllers() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.MetricsURL, nil)
			if err != nil {
				return false, err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				continue // not yet
			}
			text, err := io.ReadAll(response.Body)
			if err := response.Body.Close(); err != nil {
				return false, err
			}
			if err == nil && strings.Contains(string(text), fmt.Sprintf("leader_election_master_status{name=%q} 1", lease)) {
				leader = r
			}
		}
		return leader != nil, nil
	})
	return leader, err
}

// assignments of all VolumeAttachments since the watch began.
type assignments struct {
	mu       sync.Mutex
	by       map[types.UID]string
	problems []string
}

// watch follows all VolumeAttachments until the context ends.
func (s *scene) watch(ctx context.Context) *assignments {
	s.Helper()
	seen := &assignments{by: map[types.UID]string{}}
	watching, err := s.c.Client.Watch(ctx, &storagev1.VolumeAttachmentList{})
	s.must(err)
	go func() {
		for event := range watching.ResultChan() {
			if va, ok := event.Object.(*storagev1.VolumeAttachment); ok {
				seen.add(va)
			}
		}
	}()
	return seen
}

func (a *assignments) add(va *storagev1.VolumeAttachment) {
	address := va.Status.AttachmentMetadata[va.Spec.Attacher+"/assigned-ip"]
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.by[va.UID]; before != "" && before != address {
		a.problems = append(a.problems, fmt.Sprintf("%s had %s, then %q", va.Spec.NodeName, before, address))
	}
	if va.Status.Attached != (address != "") {
		a.problems = append(a.problems, fmt.Sprintf("%s: attached %v with address %q", va.Spec.NodeName, va.Status.Attached, address))
	}
	a.by[va.UID] = address
}

// at polls the number of attached attachments without pauses until it passes a mark.
func (s *scene) at(past func(attached int) bool) {
	s.Helper()
	for begun := time.Now(); time.Since(begun) < waitTimeout; {
		a, err := s.c.Assignment(s.ctx, s.volumes[0].Name)
		s.must(err)
		if past(len(a.Addresses)) {
			return
		}
	}
	s.Fatal("the mark was never reached")
}

// Whenever the controller is killed, the next leader continues with the same assignments.
func TestKilledControllerLosesNoAssignment(t *testing.T) {
	s := newScene(t, "killed", nfs.PerNode, 4)
	watching, stop := context.WithCancel(s.ctx)
	defer stop()
	seen := s.watch(watching)
	s.must(s.c.StartController(s.ctx)) // two replicas, as the Deployment has
	nodes := s.nodes(0, 40)
	attach := func(n ...string) func() error {
		return func() error { return s.c.Attach(s.ctx, s.volumes[0], n...) }
	}
	detach := func(n ...string) func() error {
		return func() error { return s.c.Detach(s.ctx, s.volumes[0], n...) }
	}
	most := func(n int) func(int) bool { return func(attached int) bool { return attached <= n } }
	least := func(n int) func(int) bool { return func(attached int) bool { return attached >= n } }
	for i, step := range []struct {
		name    string
		do      func() error
		kill    func(attached int) bool // when
		expires bool                    // its lease expires; else it is deleted
		alone   bool                    // no other replica takes over: it is restarted
		then    int
	}{
		{"before the first", attach(nodes...), least(0), true, false, 40},
		{"while detaching", detach(nodes[:25]...), most(35), false, false, 15},
		{"while attaching", attach(nodes[:25]...), least(20), false, false, 40},
		{"at the last, alone", detach(nodes[10:]...), most(12), false, true, 10},
		{"after the first, alone", attach(nodes[10:]...), least(11), false, true, 40},
	} {
		victim, err := s.c.leader(s.ctx)
		s.must(err)
		if step.alone {
			for _, r := range s.c.Controllers() {
				if r != victim {
					s.must(s.c.StopController(r))
				}
			}
		}
		done := make(chan error, 1)
		go func() { done <- step.do() }()
		s.at(step.kill)
		s.must(s.c.KillController(victim))
		begun := time.Now()
		s.must(<-done)
		if !step.expires {
			dead := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: lease}}
			s.must(client.IgnoreNotFound(s.c.Client.Delete(s.ctx, dead)))
		}
		if i < 4 {
			s.must(s.c.StartController(s.ctx)) // its Deployment does so
		}
		if len(s.c.Controllers()) == 0 {
			s.must(s.c.StartController(s.ctx))
		}
		addresses := s.attached(step.then)
		t.Logf("%s: complete %s after the kill", step.name, time.Since(begun).Round(time.Millisecond))
		s.counted(addresses)
		if step.then == 40 {
			s.even(s.loads(addresses))
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, problem := range seen.problems {
		t.Error(problem)
	}
	if len(seen.by) < 95 {
		t.Errorf("the test saw %d attachments of 95", len(seen.by))
	}
}

package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	modelNodes   = 5
	modelServers = 4
)

var errDied = errors.New("the process has died")

// model has two processes that both take themselves for the leader. Each may crash
// between any two of its writes, and sees the API server through a cache that may be
// behind. Volumes are attached and detached, and servers go down and return.
type model struct {
	*world
	leaders [2]*leader
	// lives is how many writes a process has left; -1: it does not crash.
	lives [2]int
	// addresses that attachments were given, by UID. They never change.
	addresses map[types.UID]string
}

func newModel(t *rapid.T) *model {
	m := &model{world: newWorld(t, serviceOf(modelServers), modelNodes), addresses: map[types.UID]string{}}
	m.volume("a", "a")
	m.volume("b", "b")
	for i := range m.leaders {
		m.start(i)
	}
	return m
}

func (m *model) start(i int) {
	l := m.leader()
	l.client.Cache = m.NewCache()
	m.leaders[i], m.lives[i] = l, -1
	l.client.Before = func(fakeapi.Write) error {
		if m.lives[i] == 0 {
			return errDied
		}
		return nil
	}
	l.client.After = func(fakeapi.Write) error {
		m.inspect()
		if m.lives[i]--; m.lives[i] == 0 {
			return errDied // done, and not known
		}
		return nil
	}
}

// inspect checks what must hold after each write.
func (m *model) inspect() {
	for _, va := range m.attachments() {
		address := nfsreads.AddressOf(&va)
		must.True(m, va.Status.Attached == (address != ""), "%s: attached %v with address %q", va.Name, va.Status.Attached, address)
		before := m.addresses[va.UID]
		must.True(m, before == "" || before == address, "%s had address %s and has %s", va.Name, before, address)
		must.True(m, address == "" || strings.HasPrefix(address, "10.0.0."), "%s has %s, which the service does not have", va.Name, address)
		m.addresses[va.UID] = address
	}
}

// reconcile runs one pass of a process; a process that dies is restarted.
func (m *model) reconcile(i int, name string) {
	_, err := m.leaders[i].r.Reconcile(context.Background(), request(name))
	if errors.Is(err, errDied) {
		m.start(i)
		return
	}
	m.Must(err)
}

func (m *model) actions() map[string]func(*rapid.T) {
	one := func(t *rapid.T) (pv, node string) {
		return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "volume"), fmt.Sprintf("n%d", rapid.IntRange(0, modelNodes-1).Draw(t, "node"))
	}
	process := func(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "process") }
	return map[string]func(*rapid.T){
		"request": func(t *rapid.T) {
			pv, node := one(t)
			if m.Get(context.Background(), client.ObjectKey{Name: attachmentName(driver, pv, node)}, &storagev1.VolumeAttachment{}) != nil {
				m.world.request(pv, node)
			}
		},
		"delete": func(t *rapid.T) {
			pv, node := one(t)
			va := &storagev1.VolumeAttachment{}
			va.Name = attachmentName(driver, pv, node)
			m.Must(client.IgnoreNotFound(m.Delete(context.Background(), va)))
		},
		"reconcile": func(t *rapid.T) {
			pv, node := one(t)
			m.reconcile(process(t), attachmentName(driver, pv, node))
		},
		"hold": func(t *rapid.T) {
			pv, node := one(t)
			va := &storagev1.VolumeAttachment{}
			va.Name = attachmentName(driver, pv, node)
			m.Must(m.leaders[process(t)].client.Cache.Hold(context.Background(), va))
		},
		"catch up":   func(t *rapid.T) { m.leaders[process(t)].catchUp() },
		"crash soon": func(t *rapid.T) { m.lives[process(t)] = rapid.IntRange(1, 3).Draw(t, "writes") },
		"restart":    func(t *rapid.T) { m.start(process(t)) },
		"server": func(t *rapid.T) {
			server := fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, modelServers-1).Draw(t, "server")) // the last one stays
			m.health(server, rapid.SampledFrom([]string{"Healthy", "Down"}).Draw(t, "health"))
		},
	}
}

// rest lets everything settle under one leader, and compares it with a restart.
func (m *model) rest(t *rapid.T) {
	for i := 1; i < modelServers; i++ {
		m.health(fmt.Sprintf("10.0.0.%d", i), "Healthy")
	}
	m.start(0)
	for range 3 {
		for _, va := range m.attachments() {
			m.leaders[0].settle(va.Name)
		}
		m.leaders[0].catchUp()
	}
	nodes := map[string]bool{}
	for _, va := range m.attachments() {
		must.True(t, va.DeletionTimestamp == nil && va.Status.Attached, "%s is not settled: %+v", va.Name, va.Status)
		nodes[va.Spec.NodeName] = true
	}
	l, again := m.leaders[0], m.leader()
	got := len(l.nodesOf())
	must.True(t, got == len(nodes), "%d nodes are counted, %d have volumes", got, len(nodes))
	for node := range nodes {
		at, _ := l.placement(node)
		then, ok := again.placement(node)
		must.True(t, ok && then == at, "node %s is at %+v, after a restart at %+v", node, at, then)
	}
	m.oneVolumeLess(t, l)
}

// oneVolumeLess detaches one of two volumes of a node: nothing moves, and the node counts.
func (m *model) oneVolumeLess(t *rapid.T, l *leader) {
	for i := range modelNodes {
		node := fmt.Sprintf("n%d", i)
		at, ok := l.placement(node)
		if !ok || at.Volumes != 2 || at.Split {
			continue
		}
		before := len(l.nodesOf())
		l.detach("a", node)
		then, _ := l.placement(node)
		must.True(t, then.Address == at.Address && len(l.nodesOf()) == before, "node %s was at %+v and is at %+v", node, at, then)
	}
}

func TestAssignmentsHoldInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(m.actions())
		m.rest(t)
	})
}

// With one leader and servers that live, new nodes spread evenly whatever order they come in.
func TestNewNodesSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		l := m.leader()
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "nodes") {
			l.attach(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "volume"), fmt.Sprintf("n%d", i))
			if rapid.Bool().Draw(t, "restart") {
				l = m.leader()
			}
			loads := l.loads()
			must.True(t, loads[len(loads)-1]-loads[0] <= 1, "loads %v", loads)
		}
	})
}

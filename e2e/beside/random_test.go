package beside

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

var (
	randomFor  = flag.Duration("for", 2*time.Minute, "how long the random interleaving runs")
	randomSeed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random interleaving")
)

// TestInvariantsHoldBesideLonghorn has users, volumes, Longhorn's manager and Fairlead do
// what they do in any order. Whatever is used has to be mountable where it is used, the
// invariants hold (which the set-up looks at), and all settles in the end.
func TestInvariantsHoldBesideLonghorn(t *testing.T) {
	s := with(t)
	s.Logf("-seed %d", *randomSeed)
	s.must(s.StartSecondManager(s.ctx))
	r := &interleaving{scene: s, random: rand.New(rand.NewPCG(*randomSeed, 0)), nodes: s.Managed(), users: map[user]bool{}, values: map[string]string{
		StorageNetwork: "", StorageNetworkForRWX: "false", priorityClass: priorityClasses[0],
	}}
	defer func() { _ = s.Set(s.ctx, priorityClass, priorityClasses[0]) }() // also where it fails
	for n := range 3 {
		name := fmt.Sprintf("pvc-random-%d", n)
		s.must(s.CreateVolume(s.ctx, name, "rwx"))
		r.volumes = append(r.volumes, name)
	}
	s.must(s.CreateVolume(s.ctx, ownVolume, "rwo"))
	if r.random.IntN(2) == 0 { // the longer way to servers on a network
		s.must(r.trySet(StorageNetwork, NetworkA))
		s.must(r.trySet(StorageNetworkForRWX, "true"))
		s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
	}
	for _, volume := range r.volumes { // Longhorn takes half a minute to attach one for the first time
		s.must(r.use(user{volume, r.nodes[0]}))
	}
	r.mountable()
	for began := time.Now(); time.Since(began) < *randomFor; {
		r.step()
		r.mountable()
	}
	s.clear()
	s.set(priorityClass, priorityClasses[0])
	s.must(s.waitSettled(true))
	s.must(s.WaitApplied(s.ctx, priorityClass, true, settleTimeout))
}

const ownVolume = "pvc-random-own"

type interleaving struct {
	scene
	random  *rand.Rand
	volumes []string
	nodes   []string
	// users of RWX volumes; own tells whether the RWO volume is used.
	users  map[user]bool
	own    bool
	values map[string]string
}

// mountable waits until each volume can be mounted wherever it is used.
func (r *interleaving) mountable() {
	r.Helper()
	for u := range r.users {
		r.must(eventually.Until(r.ctx, u.volume+" to be mountable on "+u.node, attachTimeout, func() error {
			return r.MountableOn(r.ctx, u.volume, u.node)
		}))
	}
}

// user is a workload of a volume on a node.
type user struct{ volume, node string }

func (u user) String() string { return u.volume + "-" + u.node }

func pick[T any](r *interleaving, from []T) T { return from[r.random.IntN(len(from))] }

// step does one thing of those that are possible now.
func (r *interleaving) step() {
	r.Helper()
	u, other := user{pick(r, r.volumes), pick(r, r.nodes)}, user{pick(r, r.volumes), pick(r, r.nodes)}
	inUse := slices.ContainsFunc(r.nodes, func(node string) bool { return r.users[user{u.volume, node}] })
	type step struct {
		what string
		do   func() error
		can  bool
	}
	network := pick(r, []string{"", NetworkA, NetworkB})
	shared, class := pick(r, []string{"true", "false"}), pick(r, priorityClasses)
	node := pick(r, r.State.Nodes)
	rarely := r.random.IntN(4) == 0
	steps := slices.DeleteFunc([]step{
		{"use " + u.String(), func() error { return r.use(u) }, !r.users[u]},
		{"use " + other.String(), func() error { return r.use(other) }, !r.users[other]},
		{"end " + u.String(), func() error { return r.end(u) }, r.users[u]},
		{"evict " + u.String(), func() error { return r.evict(u) }, r.users[u]},
		{"use " + ownVolume, func() error { r.own = true; return r.Use(r.ctx, ownVolume) }, !r.own},
		{"end " + ownVolume, func() error { r.own = false; return r.Unuse(r.ctx, ownVolume) }, r.own},
		{"end all", r.endAll, rarely && len(r.users) > 0},
		{StorageNetwork + "=" + network, func() error { return r.trySet(StorageNetwork, network) }, r.values[StorageNetwork] != network},
		{StorageNetworkForRWX + "=" + shared, func() error { return r.trySet(StorageNetworkForRWX, shared) }, r.values[StorageNetworkForRWX] != shared && !r.strands(shared)},
		{priorityClass + "=" + class, func() error { return r.trySet(priorityClass, class) }, r.values[priorityClass] != class},
		{"move " + u.volume, func() error { r.failOver(u.volume); return nil }, inUse},
		{"crash the client on " + node, func() error { return r.crashClient(node) }, true},
		{"restart the manager", func() error { return r.Manager.Restart(r.ctx) }, rarely}, // it takes a minute to go on
		{"kill the controller", r.killController, true},
		{"upgrade the driver", func() error { return r.DeployDriver(r.ctx) }, rarely},
	}, func(s step) bool { return !s.can })
	chosen := pick(r, steps)
	r.Logf("%s %s", time.Now().UTC().Format("15:04:05.000"), chosen.what)
	r.must(chosen.do())
}

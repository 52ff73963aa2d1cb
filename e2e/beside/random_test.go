package beside

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

var (
	randomFor  = flag.Duration("for", 2*time.Minute, "how long the random interleaving runs")
	randomSeed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random interleaving")
)

// TestInvariantsHoldBesideLonghorn has users, volumes, Longhorn's manager and Fairlead do what they
// do in any order. Whatever is used has to be mountable, nothing in use is restarted, and
// all settles in the end.
func TestInvariantsHoldBesideLonghorn(t *testing.T) {
	s := with(t)
	s.Logf("-seed %d", *randomSeed)
	random := rand.New(rand.NewPCG(*randomSeed, 0))
	start := s.mark()
	r := &interleaving{scene: s, random: random, used: map[string]bool{}}
	for n := range 3 {
		name := fmt.Sprintf("pvc-random-%d", n)
		s.must(s.CreateVolume(s.ctx, name, "rwx"))
		r.volumes = append(r.volumes, name)
	}
	s.must(s.CreateVolume(s.ctx, "pvc-random-own", "rwo"))
	for began := time.Now(); time.Since(began) < *randomFor; {
		r.step()
		for volume := range r.used {
			if err := s.mountable(volume); err != nil {
				s.Fatalf("after %v: %v", r.done, err)
			}
		}
	}
	for _, violation := range restartsInUse(s.since(start, func(sandbox.Write) bool { return true }), s.Manager.pod.Spec.NodeName) {
		s.Errorf("restarted in use: %s", violation)
	}
	s.Logf("done: %v", r.done)
	s.clear()
	s.must(s.waitSettled(true))
}

type interleaving struct {
	scene
	random  *rand.Rand
	volumes []string
	used    map[string]bool
	done    []string
}

func (r *interleaving) step() {
	volume := r.volumes[r.random.IntN(len(r.volumes))]
	steps := []struct {
		what string
		do   func() error
	}{
		{"use " + volume, func() error {
			if r.used[volume] {
				return nil
			}
			r.used[volume] = true
			return r.Use(r.ctx, volume)
		}},
		{"end " + volume, func() error {
			if !r.used[volume] {
				return nil
			}
			delete(r.used, volume)
			if err := r.Unuse(r.ctx, volume); err != nil {
				return err
			}
			return r.WaitVolume(r.ctx, volume, "detached")
		}},
		{"use pvc-random-own", func() error { return r.Use(r.ctx, "pvc-random-own") }},
		{"end pvc-random-own", func() error { return r.Unuse(r.ctx, "pvc-random-own") }},
		{"storage-network", func() error {
			return r.Set(r.ctx, StorageNetwork, []string{"", NetworkA, NetworkB}[r.random.IntN(3)])
		}},
		{"RWX on", func() error { return r.Set(r.ctx, StorageNetworkForRWX, "true") }},
		{"RWX off", func() error { return r.Set(r.ctx, StorageNetworkForRWX, "false") }},
		{"move " + volume, func() error {
			if r.used[volume] {
				r.failOver(volume)
			}
			return nil
		}},
		{"restart the manager", func() error { return r.Manager.Restart(r.ctx) }},
		{"kill the controller", r.killController},
	}
	step := steps[r.random.IntN(len(steps))]
	r.done = append(r.done, step.what)
	if err := step.do(); err != nil {
		r.done[len(r.done)-1] += fmt.Sprintf(" (%v)", err) // refused, or there already
	}
}

// killController ends the controller as a crash does, and starts another.
func (r *interleaving) killController() error {
	for _, replica := range r.Replicas() {
		if replica.Name == "controller-0" {
			if err := replica.Kill(); err != nil {
				return err
			}
		}
	}
	_, err := r.StartReplica(r.ctx, sandbox.ControllerDeployment, "controller-0")
	return err
}

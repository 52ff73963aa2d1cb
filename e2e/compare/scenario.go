package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Node that volumes are attached on: the real manager runs on one node.
const Node = "node-1"

// Longhorn is the real manager or the stand-in.
type Longhorn interface {
	// CreateVolume makes a detached RWX volume and a PersistentVolume for it.
	CreateVolume(ctx context.Context, name string) error
	// Attach a volume on Node, as the CSI driver does, until it is served.
	Attach(ctx context.Context, volume string) error
	// Detach a volume, until nothing of it runs.
	Detach(ctx context.Context, volume string) error
}

// step of the scenario, and what has been done when it is over.
type step struct {
	name string
	do   func(*run, context.Context) error
}

// steps go through the networks of RWX volumes, with a volume that is attached and one that is made while the change waits.
func steps() []step {
	const old, added = "pvc-old", "pvc-new"
	return []step{
		{"1-installed", (*run).wake},
		{"2-attached", func(r *run, ctx context.Context) error {
			return errors.Join(r.CreateVolume(ctx, old), r.CreateVolume(ctx, added), r.Attach(ctx, old))
		}},
		{"3-change-waits", func(r *run, ctx context.Context) error {
			return errors.Join(r.set(ctx, storageNetwork, "kube-system/storage-net"), r.set(ctx, rwxSetting, "true"),
				r.waitApplied(ctx, storageNetwork, false), r.waitApplied(ctx, rwxSetting, false))
		}},
		{"4-attached-while-it-waits", func(r *run, ctx context.Context) error { return r.Attach(ctx, added) }},
		{"5-detached", func(r *run, ctx context.Context) error { return errors.Join(r.Detach(ctx, old), r.Detach(ctx, added)) }},
		{"6-applied", (*run).wake},
		{"7-attached-on-the-network", func(r *run, ctx context.Context) error { return r.Attach(ctx, old) }},
		{"8-components", func(r *run, ctx context.Context) error {
			return errors.Join(r.Detach(ctx, old), r.set(ctx, "taint-toleration", "disk=slow:NoSchedule"), r.waitApplied(ctx, "taint-toleration", true))
		}},
	}
}

const (
	storageNetwork = "storage-network"
	rwxSetting     = "storage-network-for-rwx-volume-enabled"
)

// Step is the name of a step, what was there at its end, and what Longhorn wrote in it, by lanes.
type Step struct {
	Name    string
	Objects []*unstructured.Unstructured
	Writes  map[string]any
}

type run struct {
	Longhorn
	client    client.Client
	namespace string
	wakes     int
}

// Run goes through the scenario, on a cluster that records all writes and has Longhorn and nothing else.
func Run(ctx context.Context, s *sandbox.Sandbox, system Longhorn) ([]Step, error) {
	r := &run{Longhorn: system, client: s.Client, namespace: longhorn.DefaultNames().Namespace}
	var done []Step
	writes, err := s.ReadWrites() // what was written before is no step
	if err != nil {
		return nil, err
	}
	for _, step := range steps() {
		read := len(writes)
		if err := step.do(r, ctx); err != nil {
			return done, fmt.Errorf("step %s: %w", step.name, err)
		}
		objects, err := r.settled(ctx)
		if err != nil {
			return done, fmt.Errorf("step %s: %w", step.name, err)
		}
		if writes, err = s.ReadWrites(); err != nil {
			return done, err
		}
		done = append(done, Step{Name: step.name, Objects: objects, Writes: order(writes[read:], r.namespace)})
	}
	return done, nil
}

const (
	timeout = 2 * time.Minute
	// quiet is how long nothing changes before a step is over: longer than Longhorn's retries take.
	quiet = 5 * time.Second
)

// settled reads the objects when they have not changed for a while.
func (r *run) settled(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var last []*unstructured.Unstructured
	var since time.Time
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		now, err := Take(ctx, r.client, r.namespace)
		if err != nil {
			return false, err
		}
		if last == nil || len(Differences(last, now)) > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) >= quiet, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until nothing changes: %w", err)
	}
	return last, nil
}

func (r *run) set(ctx context.Context, name, value string) error {
	return r.patch(ctx, name, fmt.Sprintf(`{"value":%q}`, value))
}

// wake writes something to the network settings, and waits until Longhorn has applied them.
func (r *run) wake(ctx context.Context) error {
	r.wakes++
	for _, name := range []string{storageNetwork, rwxSetting} {
		if err := r.patch(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{"test.fairlead.io/wakes":"%d"}}}`, r.wakes)); err != nil {
			return err
		}
	}
	return errors.Join(r.waitApplied(ctx, storageNetwork, true), r.waitApplied(ctx, rwxSetting, true))
}

func (r *run) patch(ctx context.Context, name, patch string) error {
	setting := &longhorn.Setting{}
	setting.Namespace, setting.Name = r.namespace, name
	if err := r.client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("changing setting %s: %w", name, err)
	}
	return nil
}

func (r *run) waitApplied(ctx context.Context, name string, applied bool) error {
	return eventually.Until(ctx, "setting "+name, timeout, func() error {
		setting := &longhorn.Setting{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, setting)
		if err == nil && setting.Status.Applied != applied {
			err = fmt.Errorf("it has applied: %v", setting.Status.Applied)
		}
		return err
	})
}

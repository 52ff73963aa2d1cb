package fencing

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// waiting is a cache whose watch of NetworkFences has never been able to list them (403, or a broken conversion webhook): as
// controller-runtime's cache (ReaderFailOnMissingInformer: false), it waits until the context ends.
type waiting struct{ client.Reader }

func (c waiting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*csiaddons.NetworkFenceList); is {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Reader.List(ctx, list, options...)
}

// inTime answers as a real client: not after the deadline.
func inTime(api client.WithWatch) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Update(ctx, o, options...)
		},
	})
}

// The memory does not wait for what only a fence needs.
func TestMemoryDoesNotWaitForAKindThatCouldNeverBeListed(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		api := inTime(w.Client.WithWatch)
		w.r.Client, w.r.API = api, api
		live := w.API.Client()
		live.Reading = func(o runtime.Object) error {
			if _, is := o.(*csiaddons.NetworkFenceList); is {
				return errAPI
			}
			return nil
		}
		w.reads(waiting{w.Client}, inTime(live.WithWatch))
		w.watch("node-1")
		var err error
		for range 3 {
			_, err = w.r.Reconcile(context.Background(), kit.Request("node-1")[0])
		}
		var list v1alpha1.NodeFenceList
		w.Must(w.API.List(context.Background(), &list))
		must.True(t, len(list.Items) == 1, "%d records after three looks: %v", len(list.Items), err)
	})
}

// NetworkFences can't be read. A healthy node gives one volume back and gets another.
func TestNewVolumeIsRememberedBesideOneThatIsGivenBack(t *testing.T) {
	w := newWorld(t).look().mustHold("pvc-a")
	w.create(volume("pvc-b")).create(attachment("pvc-b", "node-1")).detach("pvc-a", "node-1").change("node-1", func(n *corev1.Node) {
		n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: corev1.UniqueVolumeName(fence.UniqueName(rbd, "handle-pvc-b"))}}
	})
	w.Client.Reading = func(o runtime.Object) error {
		if _, is := o.(*csiaddons.NetworkFenceList); is {
			return errAPI
		}
		return nil
	}
	w.fails(3)
	got := fence.VolumeNames(w.spec().Volumes)
	must.True(t, slices.Contains(got, "pvc-b"), "on record are %q", got)
}

// A person says of a loss that the machine is off. NetworkFences can't be read until the machine came back and was lost again: the act is of
// the first loss.
func TestActIsOfItsOwnLoss(t *testing.T) {
	w := newWorld(t).look().pass(time.Minute).lose("node-1").look().mustBeLost().override(fence.GateAttach)
	w.Client.Reading = func(o runtime.Object) error {
		if _, is := o.(*csiaddons.NetworkFenceList); is {
			return errAPI
		}
		return nil
	}
	w.fails(1).pass(time.Minute).recover().fails(1).pass(time.Minute).lose("node-1").fails(1)
	w.Client.Reading = nil
	w.look()
	must.True(t, len(w.spec().Acts) == 1 && !w.spec().Volumes[0].Released, "%+v: released by %+v", w.spec().Volumes, w.spec().Acts)
}

// A machine that is gone stays fenced; fencing is switched off; the machine is given up.
func TestGivenUpWhileSwitchedOff(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look()
	w.config.Profiles[0].Mode = "off"
	w.config.GiveUp.After.Duration = time.Hour
	w.reads(w.Client, w.Client)
	w.pass(2*time.Hour + time.Millisecond).forgetWrites()
	_, err := w.reconcile("node-1")
	must.True(t, err == nil && len(w.spec().Acts) <= 1, "%v; %d writes; %d acts", err, len(w.Client.Wrote()), len(w.spec().Acts))
}

func unreadable(kinds ...client.ObjectList) func(runtime.Object) error {
	return func(o runtime.Object) error {
		for _, k := range kinds {
			if fmt.Sprintf("%T", k) == fmt.Sprintf("%T", o) {
				return errAPI
			}
		}
		return nil
	}
}

// csi-addons is broken, so nothing can be fenced. That is what the override is for.
func TestOverrideDoesNotWaitForWhatAFenceNeeds(t *testing.T) {
	w := newWorld(t).loseForGood().look()
	w.Client.Reading = unreadable(&csiaddons.NetworkFenceList{})
	w.override(fence.GateAttach).fails(5)
	must.True(t, w.spec().Volumes[0].Released, "not released: %+v, %v", w.spec().Acts, w.err)
}

// Pods of a fenced node are listed for messages.
func TestMemoryOfAFencedNodeDoesNotWaitForMessages(t *testing.T) {
	for _, kind := range []client.ObjectList{&csiaddons.NetworkFenceList{}, &corev1.PodList{}} {
		w := newWorld(t).fence()
		w.Client.Reading = unreadable(kind)
		w.pass(time.Minute).recover().fails(3)
		got, want := w.spec().ReadyChanged, w.node("node-1").Status.Conditions[0].LastTransitionTime
		must.True(t, got.Equal(&want), "%T can't be read: node-1 is Ready since %s, on record is %s: %v", kind, want, got, w.err)
	}
}

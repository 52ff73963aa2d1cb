package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// moment is one event of a watch, and when it arrived.
type moment struct {
	at time.Time
	// revision orders all objects of a cluster.
	revision int64
	what     watch.EventType
	object   client.Object
}

// film keeps every event of some kinds: nothing is sampled.
type film struct {
	mu      sync.Mutex
	moments []moment
	began   time.Time
}

// film begins with the objects that exist.
func (c *cluster) film(lists ...client.ObjectList) *film {
	c.t.Helper()
	f := &film{began: time.Now()}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("events:\n%s", f)
		}
	})
	for _, list := range lists {
		w, err := c.Client.Watch(c.t.Context(), list)
		c.must(err)
		c.t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				object, ok := event.Object.(client.Object)
				if !ok {
					continue
				}
				revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
				f.mu.Lock()
				f.moments = append(f.moments, moment{time.Now(), revision, event.Type, object})
				f.mu.Unlock()
			}
		}()
	}
	return f
}

// String shows attachments, fences and pods, for tests that fail.
func (f *film) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines strings.Builder
	for _, m := range f.moments {
		text := ""
		switch o := m.object.(type) {
		case *storagev1.VolumeAttachment:
			text = fmt.Sprintf("VolumeAttachment of %s to %s, attached: %v", *o.Spec.Source.PersistentVolumeName, o.Spec.NodeName, o.Status.Attached)
		case *csiaddons.NetworkFence:
			text = fmt.Sprintf("NetworkFence of %s, %s: %s %s", o.Labels[fence.NodeLabel], o.Spec.FenceState, o.Status.Result, o.Status.Message)
		case *corev1.Pod:
			text = fmt.Sprintf("pod %s on %s: %s, ready: %v, deleting: %v", o.Name, o.Spec.NodeName, o.Status.Phase, ready(o), o.DeletionTimestamp != nil)
		}
		fmt.Fprintf(&lines, "%8s %d %-8s %s\n", m.at.Sub(f.began).Round(time.Millisecond), m.revision, m.what, text)
	}
	return lines.String()
}

// find returns the first moment that fits.
func (f *film) find(fits func(moment) bool) (moment, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.moments, fits)
	if i < 0 {
		return moment{}, false
	}
	return f.moments[i], true
}

func (f *film) wait(c *cluster, what string, within time.Duration, fits func(moment) bool) (m moment) {
	c.t.Helper()
	c.eventually(what, within, func() error {
		var ok bool
		if m, ok = f.find(fits); !ok {
			return fmt.Errorf("no such event")
		}
		return nil
	})
	return m
}

// attachment fits the creation or the end of an attachment of a volume to a node.
func attachment(what watch.EventType, volume, node string) func(moment) bool {
	return func(m moment) bool {
		va, ok := m.object.(*storagev1.VolumeAttachment)
		return ok && m.what == what && va.Spec.Source.PersistentVolumeName != nil && *va.Spec.Source.PersistentVolumeName == volume && va.Spec.NodeName == node
	}
}

func attachedTo(volume, node string) func(moment) bool { return attachment(watch.Added, volume, node) }

func detachedFrom(volume, node string) func(moment) bool {
	return attachment(watch.Deleted, volume, node)
}

// fencedOn fits the confirmation of a node's fence.
func fencedOn(node string) func(moment) bool {
	return func(m moment) bool {
		n, ok := m.object.(*csiaddons.NetworkFence)
		return ok && n.Labels[fence.NodeLabel] == node && n.Spec.FenceState == csiaddons.Fenced && n.Status.Message == "fencing operation successful"
	}
}

// scheduledTo fits the database's pod with a node, upOn the pod that runs there with its volume.
func scheduledTo(d database, node string) func(moment) bool {
	return func(m moment) bool {
		pod, ok := m.object.(*corev1.Pod)
		return ok && client.ObjectKeyFromObject(pod) == d.pod() && pod.Spec.NodeName == node
	}
}

func upOn(d database, node string) func(moment) bool {
	return func(m moment) bool {
		return scheduledTo(d, node)(m) && m.what == watch.Modified && ready(m.object.(*corev1.Pod))
	}
}

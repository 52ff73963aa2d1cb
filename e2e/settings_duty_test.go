package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// attachedEverywhere attaches a volume whose engine and replicas keep every instance manager in use.
func (c *cluster) attachedEverywhere(name string) {
	c.t.Helper()
	c.attachNew("node-1", standin.Volume{Name: name, ReplicaNodes: []string{"node-1", "node-2", "node-3"}})
}

// TestFromTheLastDetachToTheFirstRestart measures by bare watches how soon a waiting setting is applied after the last
// detach: the first template and the first pod each by itself, as one in time must not hide the other.
// Another writer then interferes.
func TestFromTheLastDetachToTheFirstRestart(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.attachedEverywhere("pvc-1")
	for _, test := range []struct {
		name   catalog.Name
		values []string // one for each try
		first  func(value string) map[string]func(moment) bool
		before bool // the first may come before the detach
	}{
		// Templates are written only once volumes are detached; then pods restart one by one.
		{catalog.PriorityClass, []string{critical, nodeCritical, "longhorn-critical"}, func(value string) map[string]func(moment) bool {
			return map[string]func(moment) bool{"template written": templateWritten(value), "pod restarted": podEnds}
		}, false},
		// Instance managers restart as soon as nothing runs on them.
		{catalog.GuaranteedCPU, []string{"20", "21", "22"}, func(string) map[string]func(moment) bool {
			return map[string]func(moment) bool{"instance manager restarted": instanceManagerEnds}
		}, true},
	} {
		c.whileQuiet(func(try int) (pulse, error) {
			value := test.values[try]
			c.set(system, string(test.name), value)
			c.waitSetting(system, string(test.name), "false")
			first, meanwhile := c.firstAfterDetach("pvc-1", test.first(value))
			var err error
			for what, took := range first {
				t.Logf("%s: first %s %s after the last detach; %s", test.name, what, took.Round(time.Millisecond/10), meanwhile)
				if took > soon || took < 0 && !test.before {
					err = errors.Join(err, fmt.Errorf("%s: %s %s after the last detach", test.name, what, took))
				}
			}
			c.waitSetting(system, string(test.name), "true")
			c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
			return meanwhile, err
		})
	}
	c.must(c.Longhorn().Detach(t.Context(), "pvc-1"))
	c.run("backs off from another writer", func(_ *testing.T, c *cluster) { c.backsOff() })
}

// firstAfterDetach detaches a volume. It returns how long after that the first moment of each kind came, and how long a
// bare watch took meanwhile.
func (c *cluster) firstAfterDetach(volume string, first map[string]func(moment) bool) (map[string]time.Duration, pulse) {
	c.t.Helper()
	f := c.film(&longhorn.VolumeList{}, &corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{})
	probe := c.startProbe()
	c.must(c.Longhorn().Detach(c.t.Context(), volume))
	detached := f.wait(c, "the detach", time.Minute, func(m moment) bool {
		v, ok := m.object.(*longhorn.Volume)
		return ok && v.Name == volume && v.Status.State == longhorn.StateDetached
	})
	took := map[string]time.Duration{}
	for what, is := range first {
		took[what] = f.wait(c, what, time.Minute, is).at.Sub(detached.at)
	}
	return took, probe.end()
}

func templateWritten(class string) func(moment) bool {
	return func(m moment) bool {
		switch o := m.object.(type) {
		case *appsv1.Deployment:
			return o.Namespace == namespace && o.Spec.Template.Spec.PriorityClassName == class
		case *appsv1.DaemonSet:
			return o.Spec.Template.Spec.PriorityClassName == class
		}
		return false
	}
}

func podEnds(m moment) bool {
	pod, ok := m.object.(*corev1.Pod)
	return ok && pod.Namespace == namespace && (m.what == watch.Deleted || pod.DeletionTimestamp != nil)
}

func instanceManagerEnds(m moment) bool {
	return podEnds(m) && m.object.GetLabels()["longhorn.io/component"] == "instance-manager"
}

// metrics of one process of Fairlead.
func (c *cluster) metrics(replica string) string {
	c.t.Helper()
	for _, r := range slices.Backward(c.Replicas()) { // the last process of the name: the others have ended
		if r.Name == replica {
			request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, r.MetricsURL, nil)
			c.must(err)
			response, err := http.DefaultClient.Do(request)
			c.must(err)
			defer response.Body.Close()
			out, err := io.ReadAll(response.Body)
			c.must(err)
			return string(out)
		}
	}
	c.t.Fatalf("no process is named %s", replica)
	return ""
}

// backsOff has another writer revert a component whenever Fairlead has written it. The unit tests show how long Fairlead
// waits then.
func (c *cluster) backsOff() {
	class := c.field(system, "priority-class", "{.value}")
	var writes atomic.Int32
	c.writeBack("csi-attacher", class, &writes)
	next := map[string]string{critical: nodeCritical, nodeCritical: critical, "longhorn-critical": critical}[class]
	c.set(system, "priority-class", next)
	c.waitIs("second write", 30*time.Second, true, func() any { return writes.Load() >= 2 })
	time.Sleep(5 * time.Second) // nothing announces that no write follows
	if n := writes.Load(); n != 2 {
		c.t.Errorf("Fairlead wrote csi-attacher %d times", n)
	}
	c.waitSetting(system, "priority-class", "false")
	for _, look := range []string{"get", "describe"} {
		c.waitPrints(40*time.Second, []string{"-n", namespace, look, own, "priority-class"}, "Deployment csi-attacher is as it was before Fairlead changed it (")
	}
	c.waitIs("blockers", 40*time.Second, "Conflict csi-attacher", func() any {
		return c.field(own, "priority-class", "{.status.blockers[*].kind} {.status.blockers[*].name}")
	})
	// Everything else is applied, and the webhooks work.
	if pod := c.instanceManager("node-1", "v1"); pod.Spec.PriorityClassName != next {
		c.t.Errorf("an instance manager has priority class %q", pod.Spec.PriorityClassName)
	}
	c.has(c.refusedSet(system, "taint-toleration", notATaint), "must be <key>[=<value>]:<effect>")
}

// writeBack reverts the class of a Deployment whenever it changes, and counts the changes: events of the status in between
// have the same generation.
func (c *cluster) writeBack(name, class string, writes *atomic.Int32) {
	c.t.Helper()
	w, err := c.Client.Watch(c.t.Context(), &appsv1.DeploymentList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	c.must(err)
	c.t.Cleanup(w.Stop)
	ctx := c.t.Context()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"priorityClassName":%q}}}}`, class)
	go func() {
		var counted int64
		for event := range w.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && d.Spec.Template.Spec.PriorityClassName != class && d.Generation > counted && ctx.Err() == nil {
				counted = d.Generation
				writes.Add(1)
				theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				_ = c.Client.Patch(context.WithoutCancel(ctx), theirs, client.RawPatch(types.MergePatchType, patch))
			}
		}
	}()
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
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
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

const (
	critical     = "system-cluster-critical"
	mostPressing = "system-node-critical"
)

// attachedEverywhere has a volume whose engine and replicas keep every instance manager in use.
func (c *cluster) attachedEverywhere(name string) {
	c.t.Helper()
	c.must(c.Longhorn().CreateVolume(c.t.Context(), standin.Volume{Name: name, ReplicaNodes: []string{"node-1", "node-2", "node-3"}}))
	c.must(c.Longhorn().Attach(c.t.Context(), name, "node-1"))
}

// TestFromTheLastDetachToTheFirstRestart measures how soon a setting that waits
// goes on: from when a bare watch sees the last volume detached to when another sees
// the first template written, the first pod end, or, for a setting that only instance
// managers are built with, the first of those. Each by itself: a template that is
// written in time must not hide that no pod is restarted. Templates are written for
// detached volumes alone; instance managers may go as soon as nothing runs on them.
func TestFromTheLastDetachToTheFirstRestart(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.attachedEverywhere("pvc-1")
	for _, test := range []struct {
		name   catalog.Name
		values []string // one for each try
		first  func(value string) map[string]func(sight) bool
		before bool // it may come before the detach
	}{
		// Templates come first, then pods one by one.
		{catalog.PriorityClass, []string{critical, mostPressing, "longhorn-critical"}, func(value string) map[string]func(sight) bool {
			return map[string]func(sight) bool{"template written": templateWritten(value), "pod restarted": podEnds}
		}, false},
		{catalog.GuaranteedCPU, []string{"20", "21", "22"}, func(string) map[string]func(sight) bool {
			return map[string]func(sight) bool{"instance manager restarted": instanceManagerEnds}
		}, true},
	} {
		c.whileQuiet(func(try int) (pulse, error) {
			value := test.values[try]
			c.set(system, string(test.name), value)
			c.waitSetting(system, string(test.name), "false")
			first, meanwhile := c.firstAfterDetach("pvc-1", test.first(value))
			var err error
			for what, took := range first {
				t.Logf("%s: first %s %s after the last detach was seen; %s: %.1f times", test.name, what,
					took.Round(time.Millisecond/10), meanwhile, float64(took)/float64(meanwhile.median))
				if took > time.Second || took < 0 && !test.before {
					err = errors.Join(err, fmt.Errorf("%s: %s %s after what it waited for was gone", test.name, what, took))
				}
			}
			c.waitSetting(system, string(test.name), "true")
			c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
			return meanwhile, err
		})
	}
}

// firstAfterDetach detaches a volume and returns how long after that was seen each
// of the others was, for the first time, and what a bare watch took meanwhile.
func (c *cluster) firstAfterDetach(volume string, first map[string]func(sight) bool) (map[string]time.Duration, pulse) {
	c.t.Helper()
	seen := c.sights(&longhorn.VolumeList{}, &corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{})
	probe := c.startProbe()
	c.must(c.Longhorn().Detach(c.t.Context(), volume))
	var detached time.Time
	at := map[string]time.Time{}
	for deadline := time.After(60 * time.Second); detached.IsZero() || len(at) < len(first); {
		select {
		case <-deadline:
			c.t.Fatalf("detached at %s, seen since: %v", detached, at)
		case s := <-seen:
			if v, ok := s.Object.(*longhorn.Volume); ok && detached.IsZero() && v.Name == volume && v.Status.State == longhorn.StateDetached {
				detached = s.at
			}
			for what, is := range first {
				if at[what].IsZero() && is(s) {
					at[what] = s.at
				}
			}
		}
	}
	took := map[string]time.Duration{}
	for what, at := range at {
		took[what] = at.Sub(detached)
	}
	return took, probe.end()
}

func templateWritten(class string) func(sight) bool {
	return func(s sight) bool {
		switch o := s.Object.(type) {
		case *appsv1.Deployment:
			return o.Spec.Template.Spec.PriorityClassName == class
		case *appsv1.DaemonSet:
			return o.Spec.Template.Spec.PriorityClassName == class
		}
		return false
	}
}

func podEnds(s sight) bool {
	pod, ok := s.Object.(*corev1.Pod)
	return ok && (s.Type == watch.Deleted || pod.DeletionTimestamp != nil)
}

func instanceManagerEnds(s sight) bool {
	pod, ok := s.Object.(*corev1.Pod)
	return ok && pod.Labels["longhorn.io/component"] == "instance-manager" && podEnds(s)
}

// metrics of one process of Fairlead.
func (c *cluster) metrics(replica string) string {
	c.t.Helper()
	for _, r := range slices.Backward(c.Replicas()) { // the last of the name: others have ended
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
	c.t.Fatalf("there is no %s", replica)
	return ""
}

// TestBacksOffFromAnotherWriter has another writer change a component back whenever
// Fairlead has written it. How long Fairlead waits then is in the unit tests.
func TestBacksOffFromAnotherWriter(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	var writes atomic.Int32
	c.writeBack("csi-attacher", "longhorn-critical", &writes)
	c.set(system, "priority-class", critical)
	c.eventually("it is tried again", 30*time.Second, func() error {
		if n := writes.Load(); n < 2 {
			return fmt.Errorf("written %d times", n)
		}
		return nil
	})
	time.Sleep(5 * time.Second) // long enough for what must not happen
	if n := writes.Load(); n != 2 {
		t.Errorf("Fairlead wrote it %d times", n)
	}
	c.waitSetting(system, "priority-class", "false")
	c.eventually("all else is rolled", 40*time.Second, func() error {
		for _, look := range [][]string{{"get", own, "priority-class"}, {"describe", own, "priority-class"}} {
			out := c.kubectl(append([]string{"-n", namespace}, look...)...)
			if want := "Deployment csi-attacher is as it was before Fairlead changed it ("; !strings.Contains(out, want) {
				return fmt.Errorf("kubectl %s does not say %q:\n%s", strings.Join(look, " "), want, out)
			}
		}
		if out := c.kubectl("-n", namespace, "get", own, "priority-class", "-o", "jsonpath={.status.blockers[*].kind} {.status.blockers[*].name}"); out != "Conflict csi-attacher" {
			return fmt.Errorf("it waits for %s", out)
		}
		return nil
	})
	// All else is as it should be, and the webhooks judge.
	if pod := c.instanceManagerPod("node-1", "v1"); pod.Spec.PriorityClassName != critical {
		t.Errorf("an instance manager is of %q", pod.Spec.PriorityClassName)
	}
	if out := c.refused("-n", namespace, "patch", system, "taint-toleration", "--type=merge", "-p", `{"value":"a=b=c:NoSchedule"}`); !strings.Contains(out, "must be <key>[=<value>]:<effect>") {
		t.Errorf("a malformed value: %s", out)
	}
}

// writeBack gives a Deployment a class again whenever it has another, and counts how
// often it was written: events of its status in between are of the same generation.
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

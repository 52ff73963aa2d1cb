package e2e

import (
	"context"
	"encoding/json"
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

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/settings"
)

const (
	critical     = "system-cluster-critical"
	mostPressing = "system-node-critical"
)

// attachedEverywhere has a volume whose engine and replicas keep every instance manager in use.
func (c *cluster) attachedEverywhere(name string) {
	c.t.Helper()
	c.must(c.Longhorn().CreateVolume(c.t.Context(), sandbox.Volume{Name: name, ReplicaNodes: []string{"node-1", "node-2", "node-3"}}))
	c.must(c.Longhorn().Attach(c.t.Context(), name, "node-1"))
}

// TestFromTheLastDetachToTheFirstRestart measures how soon a setting that waits
// goes on: from when a bare watch sees the last volume detached, or the last
// instance of an instance manager stopped, to when another sees the first template
// written, or that pod deleted.
func TestFromTheLastDetachToTheFirstRestart(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.attachedEverywhere("pvc-1")
	c.set(system, "priority-class", critical)
	c.waitSetting(system, "priority-class", "false")
	latency := c.watchLatency()
	seen := c.watchDetaching()
	c.must(c.Longhorn().Detach(t.Context(), "pvc-1"))

	var detached time.Time
	stopped, nodes := map[string]time.Time{}, map[string]string{}
	templates, pods := time.Duration(-1), time.Duration(-1)
	for deadline := time.After(20 * time.Second); templates < 0 || pods < 0; {
		select {
		case <-deadline:
			t.Fatalf("of templates %s, of pods %s", templates, pods)
		case s := <-seen:
			switch o := s.Object.(type) {
			case *longhorn.Volume:
				if detached.IsZero() && o.Status.State == longhorn.StateDetached {
					detached = s.at
				}
			case *longhorn.Engine:
				if o.Spec.NodeID != "" {
					nodes[o.Name] = o.Spec.NodeID
				} else if o.Status.CurrentState == longhorn.InstanceStopped {
					stopped[nodes[o.Name]] = s.at
				}
			case *longhorn.Replica:
				if o.Status.CurrentState == longhorn.InstanceStopped {
					stopped[o.Spec.NodeID] = s.at
				}
			case *corev1.Pod:
				ofManager := o.Labels["longhorn.io/component"] == "instance-manager"
				if ofManager && pods < 0 && (s.Type == watch.Deleted || o.DeletionTimestamp != nil) {
					pods = s.at.Sub(stopped[o.Spec.NodeName])
				}
			case *appsv1.Deployment:
				if templates < 0 && o.Spec.Template.Spec.PriorityClassName == critical {
					templates = s.at.Sub(detached)
				}
			case *appsv1.DaemonSet:
				if templates < 0 && o.Spec.Template.Spec.PriorityClassName == critical {
					templates = s.at.Sub(detached)
				}
			}
		}
	}
	for what, took := range map[string]time.Duration{
		"first template written %s after the last detach was seen":                   templates,
		"first instance manager deleted %s after its last instance was seen stopped": pods,
	} {
		t.Logf(what+"; a bare watch takes %s (median of %d): %.1f times",
			took.Round(time.Millisecond/10), latency.Round(time.Millisecond/10), latencySamples, float64(took)/float64(latency))
	}
	// Templates come first; the last instance may have stopped before or after them.
	if first := min(templates, pods); first > time.Second {
		t.Errorf("nothing was restarted for %s after what it waited for was gone", first)
	}
	c.waitSetting(system, "priority-class", "true")
}

// sight is an event of a bare watch, and when it came.
type sight struct {
	watch.Event
	at time.Time
}

// watchDetaching shows what a gate goes by, and what is done when it opens.
func (c *cluster) watchDetaching() <-chan sight {
	c.t.Helper()
	seen := make(chan sight, 10000)
	for _, list := range []client.ObjectList{
		&longhorn.VolumeList{}, &longhorn.EngineList{}, &longhorn.ReplicaList{}, &corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{},
	} {
		w, err := c.Client.Watch(c.t.Context(), list, client.InNamespace(namespace))
		c.must(err)
		c.t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				seen <- sight{event, time.Now()}
			}
		}()
	}
	time.Sleep(200 * time.Millisecond) // all of them are under way
	return seen
}

// TestBreakGlass overrides a gate: who may, what is kept of it, and what it does.
func TestBreakGlass(t *testing.T) {
	const jane, reason, says = "--as=jane", "the disk dies", `metadata.annotations[fairlead.io/override-gate]: Forbidden: jane may not override gates: that takes the verb "override-gate" on settings.fairlead.io (ClusterRole fairlead-break-glass); without it, the setting is applied when nothing is hurt`
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.attachedEverywhere("pvc-1")
	c.kubectl("-n", namespace, "create", "rolebinding", "jane-edits", "--clusterrole=fairlead-settings-editor", "--user=jane")
	c.set(system, "priority-class", critical)
	c.waitSetting(system, "priority-class", "false")
	override := []string{"-n", namespace, jane, "annotate", system, "priority-class", settings.OverrideAnnotation + "=" + reason}
	annotations := func() map[string]string {
		var s longhorn.Setting
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "priority-class"}, &s))
		return s.Annotations
	}

	if out := c.refused(override...); !strings.Contains(out, says) {
		t.Errorf("got  %s\nwant %s", out, says)
	}
	forged := settings.Override{By: "root", Reason: reason, Value: critical}.Text()
	if out := c.refused("-n", namespace, jane, "annotate", system, "priority-class", settings.OverriddenAnnotation+"="+forged); !strings.Contains(out, "is written by Fairlead and stays for the record: leave it as it is") {
		t.Errorf("a forged record: %s", out)
	}
	if out := c.refused(append(override, settings.OverriddenAnnotation+"="+forged)...); !strings.Contains(out, says) {
		t.Errorf("a forged record beside a request: %s", out)
	}

	c.kubectl("-n", namespace, "create", "rolebinding", "jane-breaks-glass", "--clusterrole=fairlead-break-glass", "--user=jane")
	inUse := c.instanceManagerPod("node-1", "v1")
	c.kubectl(append(override, settings.OverriddenAnnotation+"="+forged)...)
	var record settings.Override
	c.must(json.Unmarshal([]byte(annotations()[settings.OverriddenAnnotation]), &record))
	if record.By != "jane" || record.Reason != reason || record.Value != critical || time.Since(record.At) > time.Minute {
		t.Errorf("the record says %+v", record)
	}
	c.waitSetting(system, "priority-class", "true")
	c.allBuiltWith(critical)
	if pod := c.instanceManagerPod("node-1", "v1"); pod.UID == inUse.UID {
		t.Error("the instance manager in use is the one of before")
	}
	c.eventually("the request is closed", 10*time.Second, func() error {
		if _, open := annotations()[settings.OverrideAnnotation]; open {
			return fmt.Errorf("it is open")
		}
		return nil
	})
	if got := annotations()[settings.OverriddenAnnotation]; got != record.Text() {
		t.Errorf("the record is now %s", got)
	}
	c.kubectl("-n", namespace, jane, "annotate", "--overwrite", system, "priority-class", settings.OverriddenAnnotation+"="+forged)
	if got := annotations()[settings.OverriddenAnnotation]; got != record.Text() {
		t.Errorf("the record was overwritten with %s", got)
	}
	c.eventually("it is told", 10*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", "events", "--field-selector=reason=GateOverridden", "-o", "jsonpath={range .items[*]}{.type} {.message}{\"\\n\"}{end}")
		if want := fmt.Sprintf("Warning jane overrides the gate for value %q: %s\n", critical, reason); out != want {
			return fmt.Errorf("got %q, want %q", out, want)
		}
		return nil
	})
	if out, want := c.metrics("controller-0"), `fairlead_gate_overrides_total{profile="longhorn",setting="priority-class"} 1`; !strings.Contains(out, want) {
		t.Errorf("metrics have no %s", want)
	}
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

// TestStandsDownOnAFight has somebody write a component otherwise whenever
// Fairlead has written it. When it stands down for longer is in the unit tests.
func TestStandsDownOnAFight(t *testing.T) {
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
	for _, look := range [][]string{{"get", own, "priority-class"}, {"describe", system, "priority-class"}} {
		out := c.kubectl(append([]string{"-n", namespace}, look...)...)
		if want := "Deployment csi-attacher is as it was before Fairlead brought it in line; tried again at "; !strings.Contains(out, want) {
			t.Errorf("kubectl %s does not say %q:\n%s", strings.Join(look, " "), want, out)
		}
	}
	if out := c.kubectl("-n", namespace, "get", own, "priority-class", "-o", "jsonpath={.status.blockers[*].kind} {.status.blockers[*].name}"); out != "Conflict csi-attacher" {
		t.Errorf("it waits for %s", out)
	}
	// All else is as it should be, and the webhooks judge.
	if pod := c.instanceManagerPod("node-1", "v1"); pod.Spec.PriorityClassName != critical {
		t.Errorf("an instance manager is of %q", pod.Spec.PriorityClassName)
	}
	if out := c.refused("-n", namespace, "patch", system, "taint-toleration", "--type=merge", "-p", `{"value":"a=b=c:NoSchedule"}`); !strings.Contains(out, "must be <key>[=<value>]:<effect>") {
		t.Errorf("a malformed value: %s", out)
	}
}

// writeBack gives a Deployment a class again whenever it has another, and counts.
func (c *cluster) writeBack(name, class string, writes *atomic.Int32) {
	c.t.Helper()
	w, err := c.Client.Watch(c.t.Context(), &appsv1.DeploymentList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	c.must(err)
	c.t.Cleanup(w.Stop)
	ctx := c.t.Context()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"priorityClassName":%q}}}}`, class)
	go func() {
		for event := range w.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && d.Spec.Template.Spec.PriorityClassName != class && ctx.Err() == nil {
				writes.Add(1)
				theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				_ = c.Client.Patch(context.WithoutCancel(ctx), theirs, client.RawPatch(types.MergePatchType, patch))
			}
		}
	}()
}

package apply

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const rwxNetwork = catalog.EndpointNetworkForRWX

// changingRWX is a world whose record has changed, and then the RWX network, to a value that Longhorn reports as applied or not.
func changingRWX(t *testing.T, applied bool, record func(*v1alpha1.NetworkRollout)) *world {
	t.Helper()
	w := atRest(t, setting(rwxNetwork, ""), setting(catalog.StorageNetwork, ""))
	change(w, longhorn.Name, record)
	w.setSystemOpen(rwxNetwork, "kube-system/storage-net")
	w.longhornApplies(applied)
	w.wrote = nil
	w.comeToRest()
	return w
}

func (w *world) longhornApplies(applied bool) {
	w.Helper()
	change(w, string(rwxNetwork), func(s *longhorn.Setting) { s.Status.Applied = applied })
}

// Longhorn would delete a Service with a cluster IP under its mounts: canCleanupService of longhorn-manager v1.12.0.
func TestAppliedIsHeldWhileServicesHaveClusterIPs(t *testing.T) {
	const once = "status longhorn.Setting/" + string(rwxNetwork)
	w := changingRWX(t, true, func(r *v1alpha1.NetworkRollout) {
		r.Status.Recorded, r.Status.Clients.Network = true, "kube-system/storage-net@lhnet2"
	})
	w.wantLonghornWrites(once)
	must.True(t, !w.system(rwxNetwork).Status.Applied, "applied while clients still move")
	// Without the webhook Longhorn writes true again. The two must not write in turns.
	w.longhornApplies(true)
	w.comeToRest()
	w.wantLonghornWrites(once)
}

// Fairlead is installed beside a Longhorn whose network is applied.
func TestAppliedIsNotHeldBeforeNetworkIsRecorded(t *testing.T) {
	f := newFixture(t, netOne, setting(rwxNetwork, netOne.Network.String()))
	testkit.Change(f.Bench, names.Namespace, string(rwxNetwork), func(s *v1alpha1.Setting) { s.Value = nil })
	testkit.Change(f.Bench, names.Namespace, string(rwxNetwork), func(s *longhorn.Setting) { s.Status.Applied = true })
	f.Must(f.Delete(t.Context(), f.rollout()))
	f.comeToRest()
	f.wantApplied()
	wrote := slices.Clone(f.Client.Writes)
	must.True(t, !slices.ContainsFunc(wrote, func(w fakeapi.Write) bool { _, theirs := w.Object.(*longhorn.Setting); return theirs }), "wrote %q", f.Client.Wrote())
}

// A pod on a lost node is built right and not Ready: Longhorn's RWX settings need not wait for the node.
func TestLostNodeDelaysNoRWXSetting(t *testing.T) {
	const rwx = catalog.StorageNetworkForRWX
	for name, test := range map[string]struct {
		network string
		applied bool
	}{
		"built with the storage network":                      {"", true},
		"not yet built: a sync may delete pods that are used": {"kube-system/one", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, setting(catalog.StorageNetwork, ""), setting(rwx, "false"))
			change(w, "im-node-2", func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse })
			testkit.Change(w.Bench, "", "node-2", func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown })
			w.setSystem(catalog.StorageNetwork, test.network)
			w.setSystem(rwx, "true")
			w.steps(5)
			applied := w.system(rwx).Status.Applied
			must.Check(t, applied == test.applied, "applied %t; %+v", applied, w.status(catalog.StorageNetwork))
		})
	}
}

// If nothing is attached, Longhorn applies a value itself, and undoes Fairlead's earlier change.
func TestRevertedValueIsNotHeldBack(t *testing.T) {
	w := changing(t)
	w.comeToRest()
	w.setSystemOpen(class, "")
	change(w, "csi-attacher", func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "" })
	w.step()
	before := w.Clock.Now()
	w.setSystemOpen(class, "high")
	w.step()
	blockers := w.status(class).Blockers
	must.Check(t, len(blockers) == 0, "the value waits for %v", blockers)
	w.comeToRest()
	got := w.deployment().Spec.Template.Spec.PriorityClassName
	must.Check(t, got == "high" && w.Clock.Since(before) <= pauses[0], "after %s the Deployment has class %q", w.Clock.Since(before), got)
}

// Each write to a setting wakes every longhorn-manager: two writes of Fairlead's had an idle instance manager
// restarted a second time while Longhorn rolled the value out.
func TestNothingIsWrittenWhileLonghornApplies(t *testing.T) {
	w := atRest(t, setting(class, ""), setting(catalog.TaintToleration, ""), setting("log-level", "info"))
	w.setSystemOpen(class, "high")
	w.restart()
	w.comeToRest()
	w.Must(w.builtWith("high"))
	w.wantLonghornWrites()
}

func TestAppliedIsWrittenOnceLonghornGivesUp(t *testing.T) {
	w := waiting(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	for _, value := range []string{"high", "higher", "high"} {
		w.setSystem(class, value)
		w.wrote = nil
		w.comeToRest()
		w.wantLonghornWrites()
		w.remove(inUse()...)
		w.comeToRest()
		w.wantEnd(value)
		w.wantLonghornWrites("status longhorn.Setting/priority-class")
		a := w.system(class).Annotations
		must.Check(t, a == nil, "annotations %v", a)
		w.create(inUse()...)
	}
}

// Longhorn may find a component not applied that Fairlead does not know.
func TestAppliedIsNotWrittenInTurns(t *testing.T) {
	w := atRest(t, setting(class, ""))
	answers := 0
	w.after = func() {
		if w.system(class).Status.Applied {
			answers++
			change(w, string(class), func(s *longhorn.Setting) { s.Status.Applied = false })
		}
	}
	w.setSystem(class, "high")
	w.comeToRest()
	w.Pass(time.Hour)
	w.comeToRest()
	must.Equal(t, answers, 1, "writes of Longhorn")
}

// Regression, seen beside longhorn-manager v1.12.1: after a restart, Longhorn took back applied of storage-network while a
// volume was attached. Fairlead had written applied once, and it stayed false after the detach.
func TestAppliedIsWrittenAgainWhenNothingIsAttached(t *testing.T) {
	for name, again := range map[catalog.Name]bool{catalog.StorageNetwork: true, class: false} {
		w := atRest(t, setting(name, "ns/high"))
		plans := map[catalog.Name]planner.SettingPlan{name: {Name: name, Value: catalog.Value{Text: "ns/high", Source: catalog.SourceLonghorn}, Applied: true}}
		report := func(attached bool) bool {
			change(w, string(name), func(s *longhorn.Setting) { s.Status.Applied = false })
			var r reporting
			facts := planner.Facts{Rollout: rollout.Rollout{Volumes: []rwx.Volume{{Name: "pvc-a", Attached: attached}}}}
			w.r.reportSystem(t.Context(), facts, plans, &r)
			w.Must(r.err())
			return w.system(name).Status.Applied
		}
		must.True(t, report(true), "%s: applied is not written", name)
		for round := range 2 {
			must.True(t, !report(true), "%s: Fairlead and Longhorn write in turns", name)
			must.Equal(t, report(false), again, "%s: written after detach %d", name, round)
			must.True(t, !report(false), "%s: Fairlead and Longhorn write in turns", name)
			must.True(t, !report(true), "%s: written at an attach", name)
		}
	}
}

// Regression, seen beside longhorn-manager v1.10.0: both network settings were set, taken back and set again. Fairlead thought
// that it had written applied of the RWX setting already, and Longhorn's stayed false.
func TestAppliedOfRWXSettingIsWrittenAgainForTheSameValue(t *testing.T) {
	const rwx = catalog.StorageNetworkForRWX
	w := atRest(t, setting(catalog.StorageNetwork, ""), setting(rwx, "false"))
	// report is a look at a value, which Longhorn reports as applied or not.
	report := func(value string, longhornSays, built, applied bool) bool {
		change(w, string(rwx), func(s *longhorn.Setting) { s.Value, s.Status.Applied = value, longhornSays })
		plans := map[catalog.Name]planner.SettingPlan{
			catalog.StorageNetwork: {Name: catalog.StorageNetwork, Built: built},
			rwx:                    {Name: rwx, Value: catalog.Value{Text: value, Source: catalog.SourceLonghorn}, Applied: applied},
		}
		var r reporting
		w.r.reportSystem(t.Context(), planner.Facts{}, plans, &r)
		w.Must(r.err())
		return w.system(rwx).Status.Applied
	}
	must.True(t, report("true", false, true, true), "applied is not written")
	report("false", true, false, false) // storage-network is taken back too: instance managers restart
	report("false", true, true, true)   // Longhorn wrote applied itself
	report("true", false, false, false)
	w.Pass(eventEvery)
	must.True(t, report("true", false, true, true), "applied is not written for the value that was set again")
}

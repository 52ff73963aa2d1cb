package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// The pod is replaced between the live look and its deletion.
func TestReplacedClientIsNotRestarted(t *testing.T) {
	f := newFixture(t, multus.Attachment{})
	f.choose(netOne)
	f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Annotations[appsv1.DeprecatedTemplateGeneration] = "2" })
	replaced := false
	f.before["delete Pod/csi"] = func(client.Object) error {
		if replaced {
			return nil
		}
		replaced = true
		pod := f.pod()
		f.Must(f.Delete(t.Context(), pod.DeepCopy()))
		pod.ResourceVersion, pod.UID = "", ""
		return f.Create(t.Context(), pod)
	}
	for range 20 {
		if replaced {
			break
		}
		f.Must(f.reconcile())
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = ds.Generation })
	}
	must.True(t, replaced, "no client was restarted: %s", f.rollout().Status.Message)
	must.True(t, f.pod() != nil, "the replacement is gone")
}

// A cache may lack an attached volume.
func TestStaleCacheOpensNoGate(t *testing.T) {
	f := newFixture(t, multus.Attachment{}, attachedRWX())
	f.choose(netOne)
	f.cache.Absent(attachedRWX())
	for range 5 {
		f.Must(f.reconcile())
	}
	if got := f.rollout().Status.Clients.Network; got != "" {
		t.Fatalf("clients move to %s while a volume is attached", got)
	}
	f.Must(f.Delete(t.Context(), attachedRWX()))
	f.Must(f.reconcile())
	if got := f.rollout().Status.Clients.Network; got != netOne.String() {
		t.Fatalf("the gate is open, and clients stay on %q: %s", got, f.rollout().Status.Message)
	}
}

// With servers on the cluster network at first, Longhorn's setting would be written as not applied.
func TestRecordBeginsWithServersOnTheClientsNetwork(t *testing.T) {
	f := newFixture(t, netOne)
	f.Must(f.Delete(t.Context(), f.rollout()))
	for range 3 { // the object, the record, the report
		f.Must(f.reconcile())
		if s := f.rollout().Status; s.Recorded && s.Servers.Network != netOne.String() {
			t.Fatalf("servers begin on %q", s.Servers.Network)
		}
	}
	f.wantApplied()
}

// With settings: guard, the storage system rolls out by itself.
func TestRecordFollowsWhatTheStorageSystemRollsOut(t *testing.T) {
	for applies, want := range map[bool]multus.Attachment{false: netTwo, true: netOne} {
		f := newFixture(t, netOne)
		f.r.Applies = applies
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Annotations[multus.NetworksAnnotation] = netTwo.String() })
		testkit.Change(f.Bench, names.Namespace, "csi", func(pod *corev1.Pod) { pod.Annotations = clientPod("1", netTwo.String()).Annotations })
		f.Must(f.reconcile())
		must.Equal(t, f.rollout().Status.Clients.Network, want.String(), "clients, applies %t", applies)
	}
}

func TestChangedRecordIsNotOverwritten(t *testing.T) {
	networks := []multus.Attachment{multus.VolumeAttachment(netTwo.Network)}
	for name, test := range map[string]struct {
		decidedOn rollout.Record
		conflict  bool
	}{
		"same record":    {rollout.Record{Clients: netOne, Servers: netOne}, false},
		"clients":        {rollout.Record{Clients: netTwo, Servers: netOne}, true},
		"servers":        {rollout.Record{Clients: netOne, Servers: netTwo}, true},
		"volume clients": {rollout.Record{Clients: netOne, Servers: netOne, VolumeClients: networks}, true},
		"volume servers": {rollout.Record{Clients: netOne, Servers: netOne, VolumeServers: networks}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne)
			err := f.r.recordStep(t.Context(), rollout.Rollout{Record: test.decidedOn}, rollout.Step{Action: rollout.RecordServers})
			if apierrors.IsConflict(err) != test.conflict || (err == nil) == test.conflict || (f.writes() == 0) != test.conflict {
				t.Fatalf("got %v, %d writes", err, f.writes())
			}
		})
	}
}

// An installer writes the DaemonSet between the look and the patch.
func TestChangedDaemonSetIsNotPatched(t *testing.T) {
	f := newFixture(t, multus.Attachment{})
	f.before["patch DaemonSet/longhorn-csi-plugin"] = func(client.Object) error {
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Labels = map[string]string{"theirs": "x"} })
		return nil
	}
	ds := f.r.clientDaemonSet()
	f.Must(f.API.Get(t.Context(), client.ObjectKeyFromObject(ds), ds))
	err := f.r.patch(t.Context(), ds, ds.ResourceVersion, func() error {
		ds.Labels = map[string]string{"a": "b"}
		return nil
	})
	must.True(t, apierrors.IsConflict(err), "got %v", err)
}

// After a crash, the status must not report Applied.
func TestChangingRecordIsNotApplied(t *testing.T) {
	f := newFixture(t, multus.Attachment{})
	f.Must(f.reconcile())
	f.wantApplied()
	f.choose(netOne)
	f.Must(f.reconcile())
	if s := f.rollout().Status; s.Clients.Network != netOne.String() || s.Desired != netOne.String() || s.Phase != "RollingClients" {
		t.Errorf("clients %q, desired %q, phase %s", s.Clients.Network, s.Desired, s.Phase)
	}
}

// What was judged is a precondition of every change of the template: another writer's template was not.
func TestChangedTemplateIsNotResumed(t *testing.T) {
	f := newFixture(t, multus.Attachment{})
	facts, _, err := f.r.look(t.Context(), f.r.Live, nil)
	f.Must(err)
	f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Annotations = map[string]string{"theirs": "x"} })
	for _, action := range []rollout.Action{rollout.ResumeTemplate, rollout.UpdateTemplate} {
		t.Run(string(action), func(t *testing.T) {
			err := f.r.doNetwork(t.Context(), facts, planner.Plan{Network: rollout.Step{Action: action}})
			must.True(t, apierrors.IsConflict(err), "got %v", err)
		})
	}
}

// The volume starts between the decision and the deletion of its Service, two dry runs and a write later.
func TestServiceOfAStartingVolumeIsNotReplaced(t *testing.T) {
	for name, started := range map[string]client.Object{
		"attached": objects.LonghornVolume("v", "node-1", objects.RWX),
		"asked for": &longhorn.VolumeAttachment{ObjectMeta: objects.Here("v"), Spec: longhorn.VolumeAttachmentSpec{
			Volume: "v", AttachmentTickets: map[string]longhorn.AttachmentTicket{"csi-1": {NodeID: "node-1"}},
		}},
		"served": objects.ServerPod("v"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne, objects.Headless("v", netTwo, func(s *corev1.Service) { s.Spec.ClusterIP = "10.0.0.1" }))
			seen, err := f.r.Live.ServiceObject(t.Context(), "v")
			f.Must(err)
			f.Must(f.Create(t.Context(), started))
			err = f.r.replaceService(t.Context(), f.r.Live.ServiceOf(seen), rollout.Record{Clients: netOne, Servers: netOne}, rwx.Request{})
			must.True(t, apierrors.IsConflict(err), "got %v", err)
			after, err := f.r.Live.ServiceObject(t.Context(), "v")
			must.True(t, err == nil && after.UID == seen.UID && after.DeletionTimestamp == nil, "the Service is gone: %v", err)
		})
	}
}

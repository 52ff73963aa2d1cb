package kit

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func node(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	change(n)
	return n
}

func record(change func(*v1alpha1.NodeFence)) *v1alpha1.NodeFence {
	now := metav1.NewTime(time.Unix(100, 0))
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Generation: 1}, Spec: v1alpha1.NodeFenceSpec{
		LastSeen:   &now,
		Identities: []v1alpha1.StorageIdentity{{Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0.1/32", LastSeen: now}}}},
	}}
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHeld, ObservedGeneration: 1}}
	change(n)
	return n
}

func TestUpdatesThatPass(t *testing.T) {
	cordoned := Updated(func(before, after *corev1.Node) bool { return before.Spec.Unschedulable != after.Spec.Unschedulable })
	annotated := AnnotationsChanged(func(a map[string]string) bool { return a["x"] != "" })
	plain, plainRecord := node(func(*corev1.Node) {}), record(func(*v1alpha1.NodeFence) {})
	cordon := node(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	rewritten := node(func(n *corev1.Node) { n.ResourceVersion, n.ManagedFields = "2", nil })
	relevant := node(func(n *corev1.Node) { n.Annotations = map[string]string{"x": "1"} })
	for name, c := range map[string]struct {
		p             predicate.Predicate
		before, after client.Object
		passes        bool
	}{
		"a write that changes nothing":       {Changed(), plain, rewritten, false},
		"a change":                           {Changed(), plain, cordon, true},
		"another field than the one watched": {cordoned, plain, rewritten, false},
		"the watched field":                  {cordoned, plain, cordon, true},
		"another kind":                       {cordoned, &corev1.Pod{}, &corev1.Pod{}, false},
		"times of a record": {FenceRecordChanged(), plainRecord, record(func(n *v1alpha1.NodeFence) {
			n.ResourceVersion, n.Generation, n.Spec.LastSeen, n.Spec.Identities[0].Addresses[0].LastSeen = "2", 2, nil, metav1.Time{}
			n.Status.ObservedGeneration, n.Status.Conditions[0].ObservedGeneration = 2, 2
		}), false},
		"an address of a record": {FenceRecordChanged(), plainRecord, record(func(n *v1alpha1.NodeFence) {
			n.Spec.Identities[0].Addresses[0].CIDR = "10.0.0.2/32"
		}), true},
		"a relevant annotation added":      {annotated, plain, relevant, true},
		"a relevant annotation removed":    {annotated, relevant, plain, true},
		"a relevant annotation that stays": {annotated, relevant, relevant, false},
		"no relevant annotation": {annotated, plain, node(func(n *corev1.Node) {
			n.Annotations = map[string]string{"y": "1"}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.p.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.passes {
				t.Errorf("passes: %t, want %t", got, c.passes)
			}
		})
	}
	must.Check(t, plain.ResourceVersion == "1" && plainRecord.Spec.LastSeen != nil && plainRecord.Status.Conditions[0].ObservedGeneration == 1, "an object of the cache was changed")
}

func TestObjectsThatPass(t *testing.T) {
	driver := OfDriver(func(name string) bool { return name == "ours" })
	annotated := AnnotationsChanged(func(a map[string]string) bool { return a["x"] != "" })
	attachment := func(attacher string) client.Object {
		return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: attacher}}
	}
	for name, c := range map[string]struct {
		p      predicate.Predicate
		object client.Object
		passes bool
	}{
		"the namespace":                {InNamespace("ns"), node(func(*corev1.Node) {}), true},
		"another namespace":            {InNamespace("other"), node(func(*corev1.Node) {}), false},
		"an attachment of the driver":  {driver, attachment("ours"), true},
		"an attachment of another one": {driver, attachment("theirs"), false},
		"no attachment":                {driver, node(func(*corev1.Node) {}), false},
		"a relevant annotation":        {annotated, node(func(n *corev1.Node) { n.Annotations = map[string]string{"x": "1"} }), true},
		"no annotation":                {annotated, node(func(*corev1.Node) {}), false},
	} {
		t.Run(name, func(t *testing.T) {
			must.Check(t, c.p.Create(event.CreateEvent{Object: c.object}) == c.passes && c.p.Delete(event.DeleteEvent{Object: c.object}) == c.passes, "want %t", c.passes)
		})
	}
}

package predicates

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyChangesPass(t *testing.T) {
	was := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	same := was.DeepCopy()
	same.ResourceVersion, same.ManagedFields = "2", nil
	cordoned := was.DeepCopy()
	cordoned.Spec.Unschedulable = true
	byCordon := NodeChanged(func(was, is *corev1.Node) bool { return was.Spec.Unschedulable != is.Spec.Unschedulable })
	for _, p := range []interface{ Update(event.UpdateEvent) bool }{Changed(), byCordon} {
		if p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: same}) {
			t.Error("what changes nothing passes")
		}
		if !p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: cordoned}) {
			t.Error("a change does not pass")
		}
	}
	if was.ResourceVersion != "1" {
		t.Error("what the cache has was changed")
	}
	if byCordon.Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: &corev1.Pod{}}) {
		t.Error("a pod passes for a node")
	}
}

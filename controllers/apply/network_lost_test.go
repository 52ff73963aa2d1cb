package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Regression: the pod of a lost node was deleted first, and used up maxUnavailable while it terminated.
func TestLostNodeDelaysNoOtherNode(t *testing.T) {
	other := clientPod("1", "")
	other.Name, other.Spec.NodeName = "csi-2", "node-2"
	f := newFixture(t, multus.Attachment{}, other, objects.Node("node-2"), objects.Node("node-1", objects.Readiness(corev1.ConditionUnknown, testkit.Noon)))
	testkit.Change(f.Bench, names.Namespace, "csi", func(pod *corev1.Pod) { pod.Status.Conditions = nil })
	f.choose(netOne)
	var deleted []string
	f.before["delete Pod/csi"] = func(client.Object) error { deleted = append(deleted, "csi"); return nil }
	f.before["delete Pod/csi-2"] = func(client.Object) error { deleted = append(deleted, "csi-2"); return nil }
	for range 8 {
		f.Must(f.reconcile())
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) {
			ds.Status.DesiredNumberScheduled, ds.Status.ObservedGeneration = 2, ds.Generation
			if ds.Generation > 0 {
				ds.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
			}
		})
	}
	must.Check(t, len(deleted) == 1 && deleted[0] == "csi-2", "restarted %q", deleted)
}

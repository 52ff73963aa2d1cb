package predicates

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// RecordChanged passes all but the times at which a node and its addresses were seen again: they are written every few
// minutes of each healthy node.
func RecordChanged() predicate.Predicate {
	without := func(o client.Object) client.Object {
		n, ok := o.DeepCopyObject().(*v1alpha1.NodeFence)
		if !ok {
			return o
		}
		n.Status.LastHealthy = nil
		for i := range n.Status.Identities {
			for a := range n.Status.Identities[i].Addresses {
				n.Status.Identities[i].Addresses[a].LastSeen = metav1.Time{}
			}
		}
		return n
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return Changed().Update(event.UpdateEvent{ObjectOld: without(e.ObjectOld), ObjectNew: without(e.ObjectNew)})
	}}
}

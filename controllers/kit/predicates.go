package kit

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// InNamespace passes objects of one namespace.
func InNamespace(namespace string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == namespace })
}

// OfDriver passes VolumeAttachments whose attacher is served.
func OfDriver(served func(driver string) bool) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		va, ok := o.(*storagev1.VolumeAttachment)
		return ok && served(va.Spec.Attacher)
	})
}

// Updated passes updates of one kind for which changed returns true, and every other event.
func Updated[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isBefore := e.ObjectOld.(T)
		after, isAfter := e.ObjectNew.(T)
		return isBefore && isAfter && changed(before, after)
	}}
}

// Changed passes updates that change what the cache keeps of an object. Longhorn
// writes the status of engines every few seconds, mostly with sizes and snapshots.
func Changed() predicate.Predicate {
	return Updated(func(before, after client.Object) bool {
		return !equality.Semantic.DeepEqual(significant(before), significant(after))
	})
}

// significant is a copy without what every write changes.
func significant(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	return o
}

// FenceRecordChanged passes all but updates of the times at which a healthy node and its
// addresses were seen, which are written every few minutes for each node, and of the text of a
// refused write: each retry may have another, and retries have their own pace.
func FenceRecordChanged() predicate.Predicate {
	return Updated(func(before, after *v1alpha1.NodeFence) bool {
		return !equality.Semantic.DeepEqual(withoutTimes(before), withoutTimes(after))
	})
}

func withoutTimes(record *v1alpha1.NodeFence) client.Object {
	n := record.DeepCopy()
	n.Status.LastHealthy, n.Status.LastError = nil, ""
	if n.Status.Reason == fence.ReasonWriteFailed {
		n.Status.Message = ""
	}
	for i := range n.Status.Identities {
		for a := range n.Status.Identities[i].Addresses {
			n.Status.Identities[i].Addresses[a].LastSeen = metav1.Time{}
		}
	}
	return significant(n)
}

// AnnotationsChanged passes objects with relevant annotations when they come, go,
// or change their annotations.
func AnnotationsChanged(relevant func(map[string]string) bool) predicate.Predicate {
	has := func(o client.Object) bool { return relevant(o.GetAnnotations()) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (has(e.ObjectOld) || has(e.ObjectNew)) && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
	}
}

// Package predicates has what several controllers leave out of the events that they watch.
package predicates

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed passes updates that change something of what the cache keeps. Longhorn
// writes the status of engines every few seconds, mostly with sizes and snapshots.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.DeepCopyObject().(client.Object), e.ObjectNew.DeepCopyObject().(client.Object)
		for _, o := range []client.Object{was, is} {
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
		}
		return !equality.Semantic.DeepEqual(was, is)
	}}
}

// NodeChanged passes updates of nodes that change what somebody looks at; a node's
// status is written every few minutes.
func NodeChanged(changed func(was, is *corev1.Node) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, wasNode := e.ObjectOld.(*corev1.Node)
		is, isNode := e.ObjectNew.(*corev1.Node)
		return wasNode && isNode && changed(was, is)
	}}
}

// AnnotationsChanged passes objects whose annotations matter, when they come, go,
// or change their annotations.
func AnnotationsChanged(matter func(map[string]string) bool) predicate.Predicate {
	matters := func(o client.Object) bool { return matter(o.GetAnnotations()) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return matters(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return matters(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (matters(e.ObjectOld) || matters(e.ObjectNew)) && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
	}
}

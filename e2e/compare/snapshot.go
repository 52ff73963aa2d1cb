package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compared are the kinds that are compared, by their API version.
func compared() []schema.GroupVersionKind {
	longhorn := schema.GroupVersion{Group: "longhorn.io", Version: "v1beta2"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	core := schema.GroupVersion{Version: "v1"}
	return []schema.GroupVersionKind{
		longhorn.WithKind("Setting"), longhorn.WithKind("ShareManager"), longhorn.WithKind("VolumeAttachment"),
		apps.WithKind("DaemonSet"), apps.WithKind("Deployment"),
		core.WithKind("Service"), core.WithKind("Endpoints"), core.WithKind("Pod"),
	}
}

// components of Longhorn whose pods are compared.
var components = []string{"share-manager", "instance-manager"}

// Take reads the objects of a namespace that are compared, normalised, in a fixed order.
func Take(ctx context.Context, c client.Client, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range compared() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; ofLonghorn(o) {
				normalise(o)
				all = append(all, o)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(id(a), id(b)) })
	return all, nil
}

// id names an object in messages and files.
func id(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// ofLonghorn leaves out what Longhorn's controllers do not make, pods of templates, and what belongs to other nodes.
func ofLonghorn(o *unstructured.Unstructured) bool {
	labels := o.GetLabels()
	switch o.GetKind() {
	case "Pod":
		node := labels["longhorn.io/node"]
		return slices.Contains(components, labels["longhorn.io/component"]) && (node == "" || node == Node)
	case "Service", "Endpoints":
		return labels["longhorn.io/share-manager"] != ""
	case "DaemonSet", "Deployment":
		return labels["longhorn.io/managed-by"] == "longhorn-manager"
	}
	return true
}

package review

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// facts are the objects that rules read: those of a cluster, and the manifests reviewed before as if they were applied.
type facts struct {
	cluster client.Reader
	scheme  *runtime.Scheme
	applied map[objectKey]*unstructured.Unstructured
}

type objectKey struct {
	schema.GroupKind
	client.ObjectKey
}

func keyOf(o *unstructured.Unstructured) objectKey {
	return objectKey{o.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

func (f *facts) apply(o *unstructured.Unstructured) {
	if o.GetName() != "" {
		f.applied[keyOf(o)] = o
	}
}

// Get reads an applied manifest, else from the cluster.
func (f *facts) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, f.scheme)
	if err != nil {
		return err
	}
	if o, ok := f.applied[objectKey{gvk.GroupKind(), key}]; ok {
		return fill(into, o)
	}
	return f.cluster.Get(ctx, key, into, options...)
}

// List reads from the cluster, and puts applied manifests in their places.
func (f *facts) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, f.scheme)
	if err != nil {
		return err
	}
	if err := f.cluster.List(ctx, list, options...); err != nil {
		return err
	}
	kind := gvk.Kind[:len(gvk.Kind)-len("List")]
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list of %s: %w", kind, err)
	}
	var all []runtime.Object
	for _, item := range items {
		about, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("reading a list of %s: %w", kind, err)
		}
		key := client.ObjectKey{Namespace: about.GetNamespace(), Name: about.GetName()}
		if f.applied[objectKey{schema.GroupKind{Group: gvk.Group, Kind: kind}, key}] == nil {
			all = append(all, item)
		}
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	for key, applied := range f.applied {
		if key.Group != gvk.Group || key.Kind != kind || !selected(applied, o) {
			continue
		}
		item, err := newItem(list)
		if err != nil {
			return err
		}
		if err := fill(item, applied); err != nil {
			return err
		}
		all = append(all, item)
	}
	return meta.SetList(list, all)
}

func selected(o *unstructured.Unstructured, by client.ListOptions) bool {
	if by.Namespace != "" && o.GetNamespace() != by.Namespace {
		return false
	}
	if by.LabelSelector != nil && !by.LabelSelector.Matches(labelsOf(o)) {
		return false
	}
	return by.FieldSelector == nil || by.FieldSelector.Matches(fieldsOf{o})
}

func newItem(list client.ObjectList) (runtime.Object, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	item, ok := reflect.New(reflect.TypeOf(items).Elem().Elem()).Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T: %w", list, errNoObject)
	}
	return item, nil
}

func fill(into runtime.Object, from *unstructured.Unstructured) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = from.DeepCopy().Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("%s %s: %w", from.GetKind(), client.ObjectKeyFromObject(from), err)
	}
	return nil
}

// fieldsOf reads fields by their paths, as spec.nodeName.
type fieldsOf struct{ o *unstructured.Unstructured }

var _ fields.Fields = fieldsOf{}

func (f fieldsOf) Has(path string) bool { return f.Get(path) != "" }

func (f fieldsOf) Get(path string) string {
	value, _, _ := unstructured.NestedString(f.o.Object, splitPath(path)...)
	return value
}

// nothing is a cluster without objects.
type nothing struct{ scheme *runtime.Scheme }

func (n nothing) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, n.scheme)
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.String())
}

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

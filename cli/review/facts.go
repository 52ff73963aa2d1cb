package review

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// facts are the objects that rules read: those of a cluster, and the manifests reviewed before as if they were applied.
type facts struct {
	// cluster is nil without a cluster.
	cluster client.Reader
	scheme  *runtime.Scheme
	applied map[objectKey]*unstructured.Unstructured
}

type objectKey struct {
	schema.GroupKind
	client.ObjectKey
}

func (f *facts) apply(o *unstructured.Unstructured) {
	if o.GetName() != "" {
		f.applied[objectKey{o.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}] = o
	}
}

// addBuiltIn adds what every cluster has: the priority classes that the API server creates.
func (f *facts) addBuiltIn() {
	for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
		class := &unstructured.Unstructured{}
		class.SetGroupVersionKind(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"))
		class.SetName(name)
		f.apply(class)
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
	if f.cluster == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.String())
	}
	return f.cluster.Get(ctx, key, into, options...)
}

// List reads from the cluster, and replaces objects by applied manifests. New manifests are on the last page.
func (f *facts) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, f.scheme)
	if err != nil {
		return err
	}
	if f.cluster != nil {
		if err := f.cluster.List(ctx, list, options...); err != nil {
			return err
		}
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a %s: %w", gvk.Kind, err)
	}
	kind := schema.GroupKind{Group: gvk.Group, Kind: strings.TrimSuffix(gvk.Kind, "List")}
	items = slices.DeleteFunc(items, func(item runtime.Object) bool {
		o, ok := item.(metav1.Object)
		return ok && f.applied[objectKey{kind, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetName()}}] != nil
	})
	var o client.ListOptions
	o.ApplyOptions(options)
	for key, applied := range f.applied {
		if key.GroupKind != kind || list.GetContinue() != "" || !selected(applied, o) {
			continue
		}
		item, err := newItem(list)
		if err != nil {
			return err
		}
		if err := fill(item, applied); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(list, items)
}

func selected(o *unstructured.Unstructured, by client.ListOptions) bool {
	if by.Namespace != "" && o.GetNamespace() != by.Namespace {
		return false
	}
	if by.LabelSelector != nil && !by.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if by.FieldSelector == nil {
		return true
	}
	values := fields.Set{}
	for _, r := range by.FieldSelector.Requirements() { // such as spec.nodeName
		values[r.Field], _, _ = unstructured.NestedString(o.Object, strings.Split(r.Field, ".")...)
	}
	return by.FieldSelector.Matches(values)
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

// merged is what `kubectl apply` makes of a manifest and the existing object: the three-way merge with the
// configuration that was applied last, strategic for kinds of Kubernetes.
func merged(scheme *runtime.Scheme, manifest, existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted, err := manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := existing.MarshalJSON()
	if err != nil {
		return nil, err
	}
	last := []byte(existing.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	document, err := threeWay(scheme, manifest, last, wanted, current)
	if err != nil {
		return nil, fmt.Errorf("merging with the existing object: %w", err)
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}

func threeWay(scheme *runtime.Scheme, manifest *unstructured.Unstructured, last, wanted, current []byte) ([]byte, error) {
	kind := manifest.GroupVersionKind()
	typed, err := scheme.New(kind)
	if err != nil || !slices.Contains([]string{"", "apps", "storage.k8s.io"}, kind.Group) {
		// The API server does not merge lists of custom resources.
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, wanted, current)
		if err != nil {
			return nil, err
		}
		return jsonpatchv4.MergePatch(current, patch)
	}
	about, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, wanted, current, about, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(current, patch, typed)
}

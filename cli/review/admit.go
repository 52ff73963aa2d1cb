package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/mutators"
)

// reviewer asks the webhook's rules about manifests.
type reviewer struct {
	entries []entry
	facts   *facts
	// namespace of manifests without one.
	namespace string
}

// review asks all entries that match. Unless they refuse the manifest, it is a fact for the manifests after it.
func (r *reviewer) review(ctx context.Context, m manifest) objectView {
	object := m.DeepCopy()
	if clusterWide[object.GroupVersionKind().GroupKind()] {
		object.SetNamespace("")
	} else {
		object.SetNamespace(cmp.Or(object.GetNamespace(), r.namespace))
	}
	view := newView(m, object)
	if is, err := configurationIn(object); is {
		view.Entries = append(view.Entries, entryView{Name: "configuration"})
		if err != nil {
			view.Denials = append(view.Denials, err.Error())
		}
	} else if err := knownFields(r.facts.scheme, object); err != nil {
		view.Denials = append(view.Denials, err.Error())
	} else if err := r.admit(ctx, m, object, &view); err != nil {
		view.Errors = append(view.Errors, cli.ExplainBy(err, "ClusterRoles fairlead-planner and fairlead-nfs-viewer").Error())
	}
	if warning := unknownSetting(object); warning != "" && view.Operation == string(admissionv1.Create) { // a newer Longhorn has others
		view.Warnings = append(view.Warnings, warning)
	}
	view.Outcome = view.outcome()
	return view
}

func (r *reviewer) admit(ctx context.Context, m manifest, object *unstructured.Unstructured, view *objectView) error {
	concerned, err := r.concerned(object.GroupVersionKind())
	if err != nil || !concerned && !r.facts.scheme.Recognizes(object.GroupVersionKind()) {
		return err
	}
	old, err := r.existing(ctx, object)
	if !concerned && apierrors.IsForbidden(err) {
		err = nil // no rule is about the manifest: a reviewer needs no right to read such kinds
	}
	switch {
	case err != nil:
		return err
	case old == nil:
		err = r.setDefaultClass(ctx, object)
	case m.created:
		return nil
	default:
		view.Operation = string(admissionv1.Update)
		object, err = merged(r.facts.scheme, object, old)
	}
	if err != nil {
		return err
	}
	before, refused := object, false
	for _, e := range r.entries {
		request := requestOf(object, old, admissionv1.Operation(view.Operation))
		if !e.matches(request, object, old) {
			continue
		}
		decision, err := e.decide.Review(ctx, request)
		refused = view.add(e, decision, err) || refused
		if object, err = patched(object, decision.Patch); err != nil {
			return fmt.Errorf("applying the patch of %s: %w", e.Name(), err)
		}
	}
	if view.Diff, err = diff(m.place(), before, object); err != nil {
		return fmt.Errorf("showing the patches: %w", err)
	}
	if !refused {
		r.facts.apply(object)
	}
	return nil
}

// unknownSetting warns of the name of a Longhorn setting that no version has, as far as is known. Longhorn ignores such a setting.
func unknownSetting(o *unstructured.Unstructured) string {
	if o.GroupVersionKind() != longhorn.GroupVersion.WithKind("Setting") || len(catalog.Unknown(map[catalog.Name]string{catalog.Name(o.GetName()): ""})) == 0 {
		return ""
	}
	return "no version of Longhorn that this Fairlead knows has a setting of this name" + cli.DidYouMean(o.GetName(), catalog.Names())
}

// knownFields refuses unknown fields in an object of Fairlead's own and in Longhorn's settings, which the API server would drop.
func knownFields(scheme *runtime.Scheme, o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	if kind.Group != v1alpha1.GroupVersion.Group && kind != longhorn.GroupVersion.WithKind("Setting") {
		return nil
	}
	typed, err := scheme.New(kind)
	if err != nil {
		return fmt.Errorf("%s has no kind %s", kind.GroupVersion(), kind.Kind)
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(text, typed)
	return errors.Join(append(unknown, err)...)
}

var errVersion = errors.New("the rules are for another version, to which only an API server could convert the manifest")

// concerned reports whether an entry is about created or updated objects of a kind. The API server converts objects of
// other versions for the entries (matchPolicy: Equivalent), which is impossible here.
func (r *reviewer) concerned(kind schema.GroupVersionKind) (bool, error) {
	resource, otherVersion := resourceOf(kind), false
	for _, e := range r.entries {
		if e.operations[resource] != nil {
			return true, nil
		}
		for other := range e.operations {
			otherVersion = otherVersion || other.GroupResource() == resource.GroupResource()
		}
	}
	if otherVersion {
		return false, fmt.Errorf("%s %s: %w", kind.GroupVersion(), kind.Kind, errVersion)
	}
	return false, nil
}

// setDefaultClass gives a new claim without a class the default one, as the API server does before it asks webhooks.
func (r *reviewer) setDefaultClass(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() != rwx.ClaimKind || o.GetAPIVersion() != "v1" {
		return nil
	}
	if _, given, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "storageClassName"); given {
		return nil
	}
	var classes storagev1.StorageClassList
	if err := r.facts.List(ctx, &classes); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	for _, c := range classes.Items {
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return unstructured.SetNestedField(o.Object, c.Name, "spec", "storageClassName")
		}
	}
	return nil
}

func (r *reviewer) existing(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.GetName() == "" {
		return nil, nil
	}
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(o.GroupVersionKind())
	err := r.facts.Get(ctx, client.ObjectKeyFromObject(o), old)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), lists.NotInstalled(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	return old, nil
}

// requestOf asks as a user to whom no exemption of an account applies.
func requestOf(object, old *unstructured.Unstructured, operation admissionv1.Operation) *admissionv1.AdmissionRequest {
	kind := object.GroupVersionKind()
	request := &admissionv1.AdmissionRequest{
		UID: "review", Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resourceOf(kind)),
		Name: object.GetName(), Namespace: object.GetNamespace(), Operation: operation, DryRun: ptr.To(true),
		UserInfo: authenticationv1.UserInfo{Username: "reviewer"},
	}
	request.Object.Object = object
	if old != nil {
		request.OldObject.Object = old
	}
	return request
}

func patched(o *unstructured.Unstructured, operations []jsonpatch.Operation) (*unstructured.Unstructured, error) {
	document, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if document, err = mutators.Apply(document, operations); err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}

// clusterWide are the kinds without a namespace that rules judge or read.
var clusterWide = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Node"}: true, {Kind: rwx.VolumeKind}: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:     true,
	{Group: "storage.k8s.io", Kind: rwx.ClassKind}:          true,
	{Group: v1alpha1.GroupVersion.Group, Kind: "NodeFence"}: true,
}

// resourceOf is the resource of a kind: kinds that rules judge have regular plurals, but for one.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	if kind.GroupKind() == reads.NetworkKind.GroupKind() {
		return kind.GroupVersion().WithResource("network-attachment-definitions")
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

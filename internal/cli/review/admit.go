package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// reviewer asks the webhook about manifests.
type reviewer struct {
	entries []entry
	webhook http.Handler
	facts   *facts
	// namespace of manifests without one.
	namespace string
}

// asked is what one entry says.
type asked struct {
	entry entry
	// reason as in the audit annotation; empty if the entry has nothing to say.
	reason   string
	warnings []string
	patch    []byte
	denial   *metav1.Status
	// failed says why the entry could not decide.
	failed error
}

// reviewed is what all entries say to one manifest.
type reviewed struct {
	manifest
	operation admissionv1.Operation
	asked     []asked
	// before and after all patches; nil if no entry is asked.
	before, after *unstructured.Unstructured
	// failed says why the manifest could not be reviewed.
	failed error
}

// person is the user of the reviews: no exemption of an account applies.
const person = "reviewer"

// review asks all entries that match. Unless they refuse the manifest, it is a fact for the ones after it.
func (r *reviewer) review(ctx context.Context, m manifest) reviewed {
	object := m.DeepCopy()
	if clusterWide[object.GroupVersionKind().GroupKind()] {
		object.SetNamespace("")
	} else {
		object.SetNamespace(cmp.Or(object.GetNamespace(), r.namespace))
	}
	m.Unstructured = object
	result := reviewed{manifest: m, operation: admissionv1.Create}
	result.failed = r.admit(ctx, object, &result)
	return result
}

func (r *reviewer) admit(ctx context.Context, object *unstructured.Unstructured, result *reviewed) error {
	gvr := resourceOf(object.GroupVersionKind())
	concerned, err := r.concerned(object, gvr)
	if err != nil {
		return err
	}
	if !concerned && !r.facts.scheme.Recognizes(object.GroupVersionKind()) {
		return nil // no rule reads it
	}
	old, err := r.existing(ctx, object)
	if err != nil {
		return err
	}
	if old != nil {
		if result.created {
			return nil
		}
		result.operation = admissionv1.Update
		if object, err = merged(r.facts.scheme, object, old); err != nil {
			return fmt.Errorf("merging with the existing object: %w", err)
		}
	} else if err := r.setDefaultClass(ctx, object); err != nil {
		return err
	}
	if !concerned {
		r.facts.apply(object)
		return nil
	}
	result.before = object
	namespace, err := r.namespaceLabels(ctx, object.GetNamespace())
	if err != nil {
		return err
	}
	refused := false
	for _, e := range r.entries {
		matches, err := e.matches(ctx, attributes(object, old, gvr, result.operation), namespace)
		if err != nil {
			return fmt.Errorf("matching %s: %w", e.name, err)
		}
		if !matches {
			continue
		}
		answer := r.ask(ctx, e, object, old, gvr, result.operation)
		result.asked = append(result.asked, answer)
		refused = refused || answer.denial != nil || answer.failed != nil && !e.failOpen
		if len(answer.patch) > 0 {
			if object, err = patched(object, answer.patch); err != nil {
				return fmt.Errorf("applying the patch of %s: %w", e.name, err)
			}
		}
	}
	result.after = object
	if !refused {
		r.facts.apply(object)
	}
	return nil
}

var errVersion = errors.New("the rules are for another version, to which only an API server could convert the manifest")

// concerned reports whether an entry is about objects of this kind at all. The API server converts objects of other
// versions for the entries (matchPolicy: Equivalent), which is impossible here.
func (r *reviewer) concerned(o *unstructured.Unstructured, gvr schema.GroupVersionResource) (bool, error) {
	otherVersion := false
	for _, e := range r.entries {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			a := attributes(o, nil, gvr, operation)
			if e.hasRuleFor(a) {
				return true, nil
			}
			otherVersion = otherVersion || e.hasRuleForOtherVersion(a)
		}
	}
	if otherVersion {
		return false, fmt.Errorf("%s %s: %w", o.GetAPIVersion(), o.GetKind(), errVersion)
	}
	return false, nil
}

// setDefaultClass gives a new claim without a class the default one, as the API server does before it asks webhooks.
func (r *reviewer) setDefaultClass(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() != storage.ClaimKind || o.GetAPIVersion() != "v1" {
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

func (r *reviewer) namespaceLabels(ctx context.Context, name string) (labels.Set, error) {
	if name == "" {
		return nil, nil
	}
	var namespace corev1.Namespace
	if err := r.facts.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	set := labels.Set{corev1.LabelMetadataName: name}
	for key, value := range namespace.Labels {
		set[key] = value
	}
	return set, nil
}

func attributes(o, old *unstructured.Unstructured, gvr schema.GroupVersionResource, operation admissionv1.Operation) admission.Attributes {
	var before runtime.Object
	if old != nil {
		before = old
	}
	return admission.NewAttributesRecord(o, before, o.GroupVersionKind(), o.GetNamespace(), o.GetName(), gvr, "",
		admission.Operation(operation), nil, true, &user.DefaultInfo{Name: person})
}

var errAnswer = errors.New("the webhook did not decide")

// ask sends an AdmissionReview to the handler of an entry.
func (r *reviewer) ask(ctx context.Context, e entry, object, old *unstructured.Unstructured, gvr schema.GroupVersionResource, operation admissionv1.Operation) asked {
	result := asked{entry: e}
	kind := object.GroupVersionKind()
	dryRun := true
	request := &admissionv1.AdmissionRequest{
		UID: "review", Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(gvr),
		Name: object.GetName(), Namespace: object.GetNamespace(), Operation: operation, DryRun: &dryRun,
		UserInfo: authenticationv1.UserInfo{Username: person}, Object: runtime.RawExtension{Object: object},
	}
	if old != nil {
		request.OldObject.Object = old
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		result.failed = err
		return result
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, e.path, bytes.NewReader(body))
	if err != nil {
		result.failed = err
		return result
	}
	call.Header.Set("Content-Type", "application/json")
	answer := response{header: http.Header{}, code: http.StatusOK}
	r.webhook.ServeHTTP(&answer, call)
	var review admissionv1.AdmissionReview
	switch {
	case answer.code != http.StatusOK:
		result.failed = fmt.Errorf("%w: %s", errAnswer, strings.TrimSpace(answer.body.String()))
		return result
	case json.Unmarshal(answer.body.Bytes(), &review) != nil || review.Response == nil:
		result.failed = fmt.Errorf("%w: its answer is not an AdmissionReview", errAnswer)
		return result
	}
	said := review.Response
	if status := said.Result; !said.Allowed && status != nil && status.Code == http.StatusServiceUnavailable {
		result.failed = fmt.Errorf("%w: %s", errAnswer, status.Message)
		return result
	}
	for _, reason := range said.AuditAnnotations {
		result.reason = reason
	}
	if !said.Allowed {
		result.denial = said.Result
	}
	result.patch = said.Patch
	result.warnings = said.Warnings
	return result
}

// response keeps what a handler writes.
type response struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *response) Header() http.Header            { return r.header }
func (r *response) WriteHeader(code int)           { r.code = code }
func (r *response) Write(text []byte) (int, error) { return r.body.Write(text) }

func patched(o *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	document, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if document, err = decoded.Apply(document); err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}

// clusterWide are the kinds without a namespace that rules judge or read.
var clusterWide = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Node"}: true, {Kind: storage.VolumeKind}: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:     true,
	{Group: "storage.k8s.io", Kind: storage.ClassKind}:      true,
	{Group: v1alpha1.GroupVersion.Group, Kind: "NodeFence"}: true,
}

// resourceOf is the resource of a kind: kinds that rules judge have regular plurals, but for one.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	if kind.GroupKind() == cluster.NetworkKind.GroupKind() {
		return kind.GroupVersion().WithResource("network-attachment-definitions")
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

func described(m manifest) string {
	name := cmp.Or(m.GetName(), m.GetGenerateName()+"*")
	if m.GetNamespace() != "" {
		name = m.GetNamespace() + "/" + name
	}
	return m.GetKind() + " " + name
}

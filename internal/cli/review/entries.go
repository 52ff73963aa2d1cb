package review

import (
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// entry of a webhook configuration, with its rule.
type entry struct {
	name     string
	failOpen bool
	// operations by resource.
	operations map[schema.GroupVersionResource][]admissionregistrationv1.OperationType
	namespaces labels.Selector
	objects    labels.Selector
	decide     admission.Entry
}

// entriesOf are the entries that the manifests of Fairlead install, but for those of fencing: they judge nodes and
// attachments, which no manifest creates. Mutating entries come first, as in the API server. Match conditions are left
// out: they save calls, and the rules allow what the conditions exclude.
func entriesOf(profiles []storage.Profile, nfsDrivers []string, rules map[string]admission.Entry) ([]entry, error) {
	mutating, validating := registration.Webhooks(profiles)
	if len(nfsDrivers) > 0 {
		m, v := registration.NFS(nfsDrivers)
		mutating.Webhooks = append(mutating.Webhooks, m.Webhooks...)
		validating.Webhooks = append(validating.Webhooks, v.Webhooks...)
	}
	webhooks := make([]admissionregistrationv1.ValidatingWebhook, 0, len(mutating.Webhooks)+len(validating.Webhooks))
	for _, w := range mutating.Webhooks {
		webhooks = append(webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, FailurePolicy: w.FailurePolicy, Rules: w.Rules,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		})
	}
	var all []entry
	for _, w := range append(webhooks, validating.Webhooks...) {
		e := entry{
			name: w.Name, failOpen: *w.FailurePolicy == admissionregistrationv1.Ignore, operations: operationsOf(w.Rules),
			decide: rules[*w.ClientConfig.Service.Path],
		}
		var err, other error
		e.namespaces, err = selectorOf(w.NamespaceSelector)
		e.objects, other = selectorOf(w.ObjectSelector)
		if err := errors.Join(err, other); err != nil {
			return nil, fmt.Errorf("reading the selectors of webhook %s: %w", w.Name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// selectorOf selects everything by default, as the API server does.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// failure says what the API server does if the entry can't decide.
func (e entry) failure() string {
	if e.failOpen {
		return "the API server would allow it (failurePolicy: Ignore)"
	}
	return "the API server would refuse it (failurePolicy: Fail)"
}

// operationsOf reads rules without wildcards: Fairlead's have none. A manifest is created or updated, and never deleted.
func operationsOf(rules []admissionregistrationv1.RuleWithOperations) map[schema.GroupVersionResource][]admissionregistrationv1.OperationType {
	operations := map[schema.GroupVersionResource][]admissionregistrationv1.OperationType{}
	for _, r := range rules {
		for _, resource := range r.Resources {
			gvr := schema.GroupVersionResource{Group: r.APIGroups[0], Version: r.APIVersions[0], Resource: resource}
			for _, o := range r.Operations {
				if o != admissionregistrationv1.Delete {
					operations[gvr] = append(operations[gvr], o)
				}
			}
		}
	}
	return operations
}

// matches reports whether the entry is for a request: by operation and resource, by the labels of the object before or
// after the change, and by the name of its namespace.
func (e entry) matches(r *admissionv1.AdmissionRequest, object, old *unstructured.Unstructured) bool {
	return slices.Contains(e.operations[schema.GroupVersionResource(r.Resource)], admissionregistrationv1.OperationType(r.Operation)) &&
		(r.Namespace == "" || e.namespaces.Matches(labels.Set{corev1.LabelMetadataName: r.Namespace})) &&
		(e.objects.Matches(labels.Set(object.GetLabels())) || old != nil && e.objects.Matches(labels.Set(old.GetLabels())))
}

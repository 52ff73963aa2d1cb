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

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// entry of a webhook configuration, with its rule.
type entry struct {
	registration.Entry
	// operations by resource.
	operations map[schema.GroupVersionResource][]admissionregistrationv1.OperationType
	namespaces labels.Selector
	objects    labels.Selector
	decide     admission.Entry
}

// entriesOf are the entries that the manifests of Fairlead install, but for those of fencing: they judge nodes and
// attachments, which no manifest creates. Mutating entries come first, as in the API server. Match conditions are left
// out: they save calls, and the rules allow what the conditions exclude.
func entriesOf(served *webhook.Longhorn, nfsDrivers []string, rules map[string]admission.Entry) ([]entry, error) {
	var names longhorn.Names
	var parts []webhook.Part
	if served != nil {
		names, parts = served.Names, append(parts, webhook.PartLonghorn)
	}
	if len(nfsDrivers) > 0 {
		parts = append(parts, webhook.PartNFS)
	}
	installed := webhook.Entries(webhook.Routes(names, nil, nfsDrivers), parts...)
	var mutating, validating []entry
	for _, i := range installed {
		e := entry{Entry: i, operations: operationsOf(i.Rules), decide: rules[i.Path]}
		var err, other error
		e.namespaces, err = selectorOf(i.Namespaces)
		e.objects, other = selectorOf(i.Objects)
		if err := errors.Join(err, other); err != nil {
			return nil, fmt.Errorf("reading the selectors of entry %s: %w", i.Name(), err)
		}
		if i.IsMutating() {
			mutating = append(mutating, e)
		} else {
			validating = append(validating, e)
		}
	}
	return append(mutating, validating...), nil
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
	if e.FailClosed {
		return "the API server would refuse it (failurePolicy: Fail)"
	}
	return "the API server would allow it (failurePolicy: Ignore)"
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

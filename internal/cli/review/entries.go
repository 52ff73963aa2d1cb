package review

import (
	"context"
	"encoding/json"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// entry of a webhook configuration. The API server's own packages match rules and conditions.
type entry struct {
	name, path string
	failOpen   bool
	rules      []admissionregistrationv1.RuleWithOperations
	namespaces labels.Selector
	objects    labels.Selector
	conditions matchconditions.Matcher
}

// entriesOf are the entries that the manifests of Fairlead install, but for those of fencing: they judge nodes and
// attachments, which no manifest creates. Mutating entries come first, as in the API server.
func entriesOf(profiles []storage.Profile, nfsDrivers []string) ([]entry, error) {
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	mutating, validating := registration.Webhooks(profiles)
	if len(nfsDrivers) > 0 {
		m, v := registration.NFS(nfsDrivers)
		mutating.Webhooks = append(mutating.Webhooks, m.Webhooks...)
		validating.Webhooks = append(validating.Webhooks, v.Webhooks...)
	}
	// A mutating webhook has the fields of a validating one, and reinvocationPolicy.
	data, err := json.Marshal(mutating.Webhooks)
	if err != nil {
		return nil, err
	}
	var webhooks []admissionregistrationv1.ValidatingWebhook
	if err := json.Unmarshal(data, &webhooks); err != nil {
		return nil, err
	}
	var all []entry
	for _, w := range append(webhooks, validating.Webhooks...) {
		e, err := entryOf(w, compiler)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func entryOf(w admissionregistrationv1.ValidatingWebhook, compiler cel.ConditionCompiler) (e entry, err error) {
	e = entry{name: w.Name, path: *w.ClientConfig.Service.Path, failOpen: *w.FailurePolicy == admissionregistrationv1.Ignore, rules: w.Rules}
	if e.namespaces, err = metav1.LabelSelectorAsSelector(orAll(w.NamespaceSelector)); err != nil {
		return e, err
	}
	if e.objects, err = metav1.LabelSelectorAsSelector(orAll(w.ObjectSelector)); err != nil {
		return e, err
	}
	var expressions []cel.ExpressionAccessor
	for _, c := range w.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	compiled := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	e.conditions = matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "review", e.name)
	return e, nil
}

// orAll is the API server's default of a selector.
func orAll(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

// failure says what the API server does if the entry can't decide.
func (e entry) failure() string {
	if e.failOpen {
		return "the API server would allow it (failurePolicy: Ignore)"
	}
	return "the API server would refuse it (failurePolicy: Fail)"
}

// matches reports whether the API server would ask the entry.
func (e entry) matches(ctx context.Context, a admission.Attributes, namespace labels.Set) (bool, error) {
	if !e.hasRuleFor(a) || a.GetNamespace() != "" && !e.namespaces.Matches(namespace) {
		return false, nil
	}
	object, _ := a.GetObject().(*unstructured.Unstructured)
	old, _ := a.GetOldObject().(*unstructured.Unstructured)
	if !e.objects.Matches(labelsOf(object)) && (old == nil || !e.objects.Matches(labelsOf(old))) {
		return false, nil
	}
	result := e.conditions.Match(ctx, &admission.VersionedAttributes{
		Attributes: a, VersionedKind: a.GetKind(), VersionedObject: a.GetObject(), VersionedOldObject: a.GetOldObject(),
	}, nil, nil)
	return result.Matches, result.Error
}

func (e entry) hasRuleFor(a admission.Attributes) bool {
	for _, r := range e.rules {
		matcher := rules.Matcher{Rule: r, Attr: a}
		if matcher.Matches() {
			return true
		}
	}
	return false
}

// hasRuleForOtherVersion is hasRuleFor, whatever the version.
func (e entry) hasRuleForOtherVersion(a admission.Attributes) bool {
	for _, r := range e.rules {
		r.APIVersions = []string{"*"}
		matcher := rules.Matcher{Rule: r, Attr: a}
		if matcher.Matches() {
			return true
		}
	}
	return false
}

func labelsOf(o *unstructured.Unstructured) labels.Set { return o.GetLabels() }

func splitPath(path string) []string { return strings.Split(path, ".") }

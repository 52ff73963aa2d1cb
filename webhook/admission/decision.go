package admission

import (
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// Decision of a mutating or validating rule.
type Decision struct {
	// Outcome and Reason have few values: they are metric labels.
	Outcome string
	Reason  string
	Detail  string

	Patch    []jsonpatch.Operation
	Denial   *metav1.Status
	Warnings []string
}

// Outcomes beside those of mutators.
const (
	outcomeAllowed = "allowed"
	outcomeDenied  = "denied"
	outcomeError   = "error"
)

// FromMutation is the decision of a mutating rule. Skipped changes are warnings, since users do not read the log.
// A skipped change has the same text alone and beside a mutation: the API server may call a mutating webhook again
// (reinvocationPolicy), and prints equal warnings once.
func FromMutation(r mutators.Result) Decision {
	d := Decision{Outcome: string(r.Outcome), Reason: r.Reason, Detail: r.Detail, Patch: r.Patch}
	if r.Outcome == mutators.Skipped {
		d.Warnings = []string{fmt.Sprintf("fairlead: %s: %s", r.Reason, r.Detail)}
	}
	for _, w := range r.Warnings {
		d.Warnings = append(d.Warnings, "fairlead: "+w)
	}
	return d
}

// FromVerdict is the decision of a validating rule. A denial looks like a validation error of the API server: kubectl
// prints it field by field.
func FromVerdict(v validators.Verdict, resource metav1.GroupVersionResource, name string) Decision {
	d := Decision{Outcome: outcomeAllowed, Reason: v.Reason, Warnings: v.Warnings}
	problems := v.Problems
	if more := len(problems) - maxProblems; more > 0 {
		problems = problems[:maxProblems]
		d.Warnings = append(d.Warnings, fmt.Sprintf("fairlead: %d more problems are not listed", more))
	}
	if len(problems) > 0 {
		status := apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, name, problems).Status()
		d.Outcome, d.Denial, d.Detail = outcomeDenied, &status, problems.ToAggregate().Error()
	}
	return d
}

// Allowed allows an object.
func Allowed(reason string) Decision { return Decision{Outcome: outcomeAllowed, Reason: reason} }

// maxProblems is how many problems are listed. The time to join them grows with the square of their number.
const maxProblems = 100

// Forbidden refuses a well-formed object. The message is all that an event shows.
func Forbidden(resource metav1.GroupVersionResource, name string, path *field.Path, reason, message string) Decision {
	return Decision{Outcome: outcomeDenied, Reason: reason, Detail: message, Denial: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: name, Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeForbidden, Message: message, Field: path.String()},
		}},
	}}
}

// CannotJudge refuses a change whose facts are unreadable.
func CannotJudge(err error) Decision {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("fairlead can't judge this change now (%v); nothing was changed, try again", err)).Status()
	return Decision{Outcome: outcomeError, Reason: reasonNoFacts, Detail: err.Error(), Denial: &status}
}

// auditKey is the key of the audit annotation. The API server prefixes it with the webhook's name.
const auditKey = "decision"

// response of a decision. The API server refuses a patchType without a patch.
func (d Decision) response(uid string) (admissionv1.AdmissionResponse, error) {
	response := admissionv1.AdmissionResponse{
		UID: types.UID(uid), Allowed: d.Denial == nil, Result: d.Denial, Warnings: d.Warnings,
	}
	if text := d.Audit(); text != "" {
		response.AuditAnnotations = map[string]string{auditKey: text}
	}
	if len(d.Patch) > 0 {
		patch, err := json.Marshal(d.Patch)
		if err != nil {
			return response, fmt.Errorf("writing the patch: %w", err)
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &jsonPatch
	}
	return response, nil
}

// Audit is the decision in a line, for the API server's audit log; "" if a mutating rule has nothing to do, or without
// a decision.
func (d Decision) Audit() string {
	if d.Outcome == "" || d.Outcome == string(mutators.Unchanged) {
		return ""
	}
	text := d.Outcome + ": " + d.Reason
	if d.Detail != "" {
		text += " (" + d.Detail + ")"
	}
	return text
}

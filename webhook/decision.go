package webhook

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

// Decision is what a rule came to, mutating or validating.
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

// fromMutation turns a mutator's result into a decision. What was not done is
// told as a warning, since nobody reads the logs first.
func fromMutation(r mutators.Result) Decision {
	d := Decision{Outcome: string(r.Outcome), Reason: r.Reason, Detail: r.Detail, Patch: r.Patch}
	if r.Outcome == mutators.Skipped {
		d.Warnings = []string{fmt.Sprintf("fairlead: left as it is, %s: %s", r.Reason, r.Detail)}
	}
	for _, w := range r.Warnings {
		d.Warnings = append(d.Warnings, "fairlead: "+w)
	}
	return d
}

// fromVerdict turns a validator's verdict into a decision. Its status has the
// shape of the API server's own validation errors, so that kubectl prints it
// like one, field by field.
func fromVerdict(v validators.Verdict, resource schema.GroupResource, name string) Decision {
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

// maxProblems of an object are listed. Joining them takes time that grows with their square.
const maxProblems = 100

// forbidden refuses what is well formed and must not be now. The message is for
// people: it is all that an event shows.
func forbidden(resource metav1.GroupVersionResource, name string, path *field.Path, reason, message string) Decision {
	return Decision{Outcome: outcomeDenied, Reason: reason, Detail: message, Denial: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: name, Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeForbidden, Message: message, Field: path.String()},
		}},
	}}
}

// cannotJudge refuses what could not be judged, and says that trying again may help.
func cannotJudge(err error) Decision {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("fairlead can't judge this change now (%v); nothing was changed, try again", err)).Status()
	return Decision{Outcome: outcomeError, Reason: "facts unavailable", Detail: err.Error(), Denial: &status}
}

// auditKey is the key of the audit annotation; the API server puts the
// webhook's name before it.
const auditKey = "decision"

// response writes the decision as the API server wants it. Nothing to patch is
// no patch at all, not an empty one.
func (d Decision) response(uid string) (admissionv1.AdmissionResponse, error) {
	response := admissionv1.AdmissionResponse{
		UID: types.UID(uid), Allowed: d.Denial == nil, Result: d.Denial, Warnings: d.Warnings,
	}
	if d.Outcome != string(mutators.Unchanged) {
		response.AuditAnnotations = map[string]string{auditKey: d.audit()}
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

func (d Decision) audit() string {
	text := d.Outcome + ": " + d.Reason
	if d.Detail != "" {
		text += " (" + d.Detail + ")"
	}
	return text
}

package review

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/pmezard/go-difflib/difflib"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/webhook/admission"
)

// Outcomes of a manifest, the worst first.
const (
	outcomeRefused   = "refused"
	outcomeUndecided = "undecided"
	outcomePatched   = "patched"
	outcomeWarned    = "warned"
	outcomeAllowed   = "allowed"
	// outcomeOther: no rule of Fairlead is about the manifest.
	outcomeOther = "not asked"
)

// reviewView is the output: -o json prints it.
type reviewView struct {
	// Facts that the rules read: none or cluster.
	Facts   string       `json:"facts"`
	Objects []objectView `json:"objects"`
	Summary summaryView  `json:"summary"`
}

type summaryView struct {
	Reviewed  int `json:"reviewed"`
	Refused   int `json:"refused"`
	Undecided int `json:"undecided"`
	Patched   int `json:"patched"`
	Warned    int `json:"warned"`
	// NotAsked are manifests that no rule of Fairlead is about.
	NotAsked int `json:"notAsked"`
}

type objectView struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Operation as in admission: CREATE or UPDATE.
	Operation string   `json:"operation"`
	Outcome   string   `json:"outcome"`
	Denials   []string `json:"denials"`
	Warnings  []string `json:"warnings"`
	// Errors say why an entry could not decide; the failure policy decides then.
	Errors []string `json:"errors"`
	// Diff of the manifest before and after all patches, unified; empty without patches.
	Diff    string      `json:"diff,omitempty"`
	Entries []entryView `json:"entries"`

	title string
}

// entryView is what one entry of a webhook configuration says.
type entryView struct {
	Name string `json:"name"`
	// Reason as in the API server's audit log; empty if nothing is to be done.
	Reason string `json:"reason,omitempty"`
	// Patch is a JSON patch, RFC 6902.
	Patch []jsonpatch.Operation `json:"patch,omitempty"`
}

func newView(m manifest, o *unstructured.Unstructured) objectView {
	title := cmp.Or(o.GetName(), o.GetGenerateName()+"*")
	if o.GetNamespace() != "" {
		title = o.GetNamespace() + "/" + title
	}
	if m.inside != "" {
		title += " in ConfigMap " + m.inside
	}
	return objectView{
		File: m.file, Line: m.line, APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		Operation: string(admissionv1.Create), Denials: []string{}, Warnings: []string{}, Errors: []string{}, Entries: []entryView{},
		title: o.GetKind() + " " + title,
	}
}

// add adds the decision of an entry, and reports whether the API server would refuse the manifest.
func (o *objectView) add(e entry, d admission.Decision, err error) (refused bool) {
	o.Entries = append(o.Entries, entryView{e.Name(), d.Audit(), d.Patch})
	for _, w := range d.Warnings {
		if !slices.Contains(o.Warnings, w) {
			o.Warnings = append(o.Warnings, w)
		}
	}
	switch {
	case err != nil:
		o.Errors = append(o.Errors, fmt.Sprintf("%s did not decide: %v; %s", e.Name(), err, e.failure()))
		return e.FailClosed
	case d.Denial == nil:
		return false
	case d.Denial.Code == http.StatusServiceUnavailable: // see admission.CannotJudge
		o.Errors = append(o.Errors, fmt.Sprintf("%s: %s; %s", e.Name(), d.Denial.Message, e.failure()))
	default:
		o.Denials = append(o.Denials, d.Denial.Message)
	}
	return true
}

func (o objectView) outcome() string {
	switch {
	case len(o.Denials) > 0:
		return outcomeRefused
	case len(o.Errors) > 0:
		return outcomeUndecided
	case len(o.Entries) == 0 && len(o.Warnings) == 0:
		return outcomeOther
	case o.Diff != "":
		return outcomePatched
	case len(o.Warnings) > 0:
		return outcomeWarned
	}
	return outcomeAllowed
}

// viewOf counts outcomes, and shows the manifests that a rule is about.
func viewOf(facts string, all []objectView) reviewView {
	view := reviewView{Facts: facts, Objects: []objectView{}}
	count := &view.Summary
	for _, o := range all {
		switch o.Outcome {
		case outcomeOther:
			count.NotAsked++
			continue
		case outcomeRefused:
			count.Refused++
		case outcomeUndecided:
			count.Undecided++
		}
		count.Reviewed++
		if o.Diff != "" {
			count.Patched++
		}
		if len(o.Warnings) > 0 {
			count.Warned++
		}
		view.Objects = append(view.Objects, o)
	}
	return view
}

// diff of the manifest before and after the patches; empty if they are equal.
func diff(place string, before, after *unstructured.Unstructured) (string, error) {
	was, err := yaml.Marshal(before.Object)
	if err != nil {
		return "", err
	}
	is, err := yaml.Marshal(after.Object)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(was)), B: difflib.SplitLines(string(is)), FromFile: place, ToFile: "admitted", Context: 2,
	})
}

package review

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/pmezard/go-difflib/difflib"
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
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
	// Patch is a JSON patch, RFC 6902.
	Patch json.RawMessage `json:"patch,omitempty"`
}

func viewOf(facts string, all []reviewed) (reviewView, error) {
	view := reviewView{Facts: facts, Objects: []objectView{}}
	for _, r := range all {
		o, err := objectOf(r)
		if err != nil {
			return view, err
		}
		view.Summary.count(o)
		if o.Outcome != outcomeOther {
			view.Objects = append(view.Objects, o)
		}
	}
	return view, nil
}

func (s *summaryView) count(o objectView) {
	if o.Outcome == outcomeOther {
		s.NotAsked++
		return
	}
	s.Reviewed++
	switch o.Outcome {
	case outcomeRefused:
		s.Refused++
	case outcomeUndecided:
		s.Undecided++
	}
	if o.Diff != "" {
		s.Patched++
	}
	if len(o.Warnings) > 0 {
		s.Warned++
	}
}

func objectOf(r reviewed) (objectView, error) {
	o := objectView{
		File: r.file, Line: r.line, APIVersion: r.GetAPIVersion(), Kind: r.GetKind(), Namespace: r.GetNamespace(), Name: r.GetName(),
		Operation: string(r.operation), Denials: []string{}, Warnings: []string{}, Errors: []string{}, Entries: []entryView{}, title: described(r.manifest),
	}
	if r.failed != nil {
		o.Errors = append(o.Errors, r.failed.Error())
	}
	for _, a := range r.asked {
		o.Entries = append(o.Entries, entryView{a.entry.name, a.reason, a.patch})
		if a.denial != nil {
			o.Denials = append(o.Denials, a.denial.Message)
		}
		if a.failed != nil {
			o.Errors = append(o.Errors, fmt.Sprintf("%s: %v; %s", a.entry.name, a.failed, a.entry.failure()))
		}
		for _, w := range a.warnings {
			if !slices.Contains(o.Warnings, w) {
				o.Warnings = append(o.Warnings, w)
			}
		}
	}
	var err error
	if r.after != nil {
		o.Diff, err = diff(r)
	}
	o.Outcome = o.outcome()
	return o, err
}

func (o objectView) outcome() string {
	switch {
	case len(o.Denials) > 0:
		return outcomeRefused
	case len(o.Errors) > 0:
		return outcomeUndecided
	case len(o.Entries) == 0:
		return outcomeOther
	case o.Diff != "":
		return outcomePatched
	case len(o.Warnings) > 0:
		return outcomeWarned
	}
	return outcomeAllowed
}

// diff of the manifest before and after the patches; empty if they are equal.
func diff(r reviewed) (string, error) {
	before, err := yaml.Marshal(r.before.Object)
	if err != nil {
		return "", err
	}
	after, err := yaml.Marshal(r.after.Object)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)), FromFile: r.place(), ToFile: "admitted", Context: 2,
	})
}

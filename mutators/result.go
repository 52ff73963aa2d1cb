// Package mutators holds the rules that change objects on admission, one per file. A rule is a pure function from a view of
// the object and facts to a Result. Rules are idempotent. They remove only what a setting added, never what users added.
package mutators

import (
	"encoding/json"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
)

// Outcome of a rule.
type Outcome string

// Outcomes.
const (
	// Mutated: there is a patch.
	Mutated Outcome = "mutated"
	// Unchanged: the object is up to date, or the rule does not concern it.
	Unchanged Outcome = "unchanged"
	// Skipped: the rule would change the object and must not. The user sees the reason as a warning.
	Skipped Outcome = "skipped"
)

// Result of a rule: what to patch and why, or why not.
type Result struct {
	Outcome Outcome
	// Reason in a few words, the same for all objects: a metric label and a log field.
	Reason string
	// Detail names the objects and networks of the reason.
	Detail string
	Patch  []jsonpatch.Operation
	// Warnings to the user, besides the reason.
	Warnings []string
}

// Reasons.
const (
	ReasonNetworkAdded     = "network added"
	ReasonNetworkReplaced  = "network replaced"
	ReasonNetworkRemoved   = "network removed"
	ReasonNotRecorded      = "no network recorded yet"
	ReasonClusterIP        = "given a cluster IP"
	ReasonNotAppliedYet    = "not applied yet"
	ReasonHeadless         = "made headless"
	ReasonRecorded         = "network recorded"
	ReasonEndpoint         = "endpoint follows the Service"
	ReasonNoNetwork        = "no network applied"
	ReasonUpToDate         = "up to date"
	ReasonOptOut           = "opted out"
	ReasonHostNetwork      = "on the host network"
	ReasonClash            = "interface name taken"
	ReasonOtherAddresses   = "asks for other addresses"
	ReasonVolumeWaits      = "volume waits for its network"
	ReasonUnreadable       = "networks annotation unreadable"
	ReasonNotClusterIP     = "not a ClusterIP Service"
	ReasonFixedAddress     = "fixed cluster IP"
	ReasonNoEndpoint       = "no endpoint yet"
	ReasonServiceIsUnready = "Service has no address yet"
	ReasonOverrideRecorded = "override recorded"
	ReasonPaused           = "rolling update paused"
	ReasonOverrideKept     = "record of an override kept"
	ReasonMalformed        = "value is not well formed"
	ReasonMarked           = "marked as judged"
	ReasonMountOptions     = "mount options of the NFS service"
	ReasonNoNFSService     = "no such NFS service"
)

func unchanged(reason, detail string) Result {
	return Result{Outcome: Unchanged, Reason: reason, Detail: detail}
}

func skipped(reason, detail string) Result {
	return Result{Outcome: Skipped, Reason: reason, Detail: detail}
}

func mutated(reason, detail string, patch ...jsonpatch.Operation) Result {
	return Result{Outcome: Mutated, Reason: reason, Detail: detail, Patch: patch}
}

// withWarnings adds results that were skipped.
func (r Result) withWarnings(others ...Result) Result {
	for _, o := range others {
		r.Warnings = append(r.Warnings, o.Reason+": "+o.Detail)
	}
	return r
}

// and joins the results of two rules whose patches touch different fields of one object.
func (r Result) and(other Result) Result {
	switch {
	case other.Outcome == Unchanged:
		return r
	case r.Outcome == Unchanged:
		return other
	case r.Outcome == Skipped && other.Outcome == Mutated:
		r, other = other, r
	}
	if other.Outcome == Skipped {
		r = r.withWarnings(other)
	} else {
		r.Detail += "; " + other.Detail
		r.Patch = append(r.Patch, other.Patch...)
	}
	r.Warnings = append(r.Warnings, other.Warnings...)
	return r
}

// Apply applies operations to an object's JSON.
func Apply(object []byte, operations []jsonpatch.Operation) ([]byte, error) {
	if len(operations) == 0 {
		return object, nil
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatchv4.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object)
}

// pointer escapes a key for a JSON pointer (RFC 6901, section 3).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// annotate sets an annotation under the metadata at path. An object without annotations needs the map first.
func annotate(path string, hasAnnotations bool, key, value string) jsonpatch.Operation {
	if !hasAnnotations {
		return jsonpatch.NewOperation("add", path+"/annotations", map[string]string{key: value})
	}
	return jsonpatch.NewOperation("add", path+annotationPath(key), value)
}

func annotationPath(key string) string { return "/annotations/" + pointer.Replace(key) }

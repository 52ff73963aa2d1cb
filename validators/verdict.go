// Package validators holds the rules that accept or refuse changes, one per file. A rule is a pure function from a view
// of the change and facts to a Verdict, which has all problems at once, each with what to do.
package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Verdict of a rule. No problem means allowed.
type Verdict struct {
	// Problems refuse the change, each with the path of its field.
	Problems field.ErrorList
	// Warnings are shown to the user, whether the change is allowed or not.
	Warnings []string
	// Reason in a few words, the same for all objects: a metric label and a log field.
	Reason string
}

func refusal(reason string, problems ...*field.Error) Verdict {
	return Verdict{Reason: reason, Problems: problems}
}

func (v *Verdict) refuse(reason string, problems ...*field.Error) {
	v.Reason = reason
	v.Problems = append(v.Problems, problems...)
}

func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// pend warns that the change is accepted and waits.
func (v *Verdict) pend(message string) {
	v.Reason = ReasonPending
	v.Warnings = append(v.Warnings, message)
}

// Reasons.
const (
	ReasonValid = "valid"
	// ReasonNotJudged: nothing changes that the rule judges.
	ReasonNotJudged     = "not judged"
	ReasonPending       = "accepted, pending"
	ReasonApplies       = "accepted, applied now"
	ReasonInvalidValue  = "invalid value"
	ReasonUnknown       = "unknown setting"
	ReasonNamespace     = "wrong namespace"
	ReasonNotDeletable  = "can't be deleted"
	ReasonNoSuchNetwork = "no such network"
	// ReasonNetworkNotPermitted: the configuration does not list the network for volumes.
	ReasonNetworkNotPermitted = "network not permitted"
	// ReasonAddressNotGranted says that the configuration does not give the address to claims of the namespace.
	ReasonAddressNotGranted = "address not granted"
	ReasonInUse             = "network in use"
	ReasonAddressTaken      = "address taken"
	ReasonReadOnly          = "read-only setting"
	ReasonNoSuchClass       = "no such priority class"
	ReasonEngineInUse       = "data engine in use"
	ReasonContradicts       = "contradicts another setting"
	ReasonOverride          = "override of a gate refused"
	ReasonNoEffect          = "accepted, without effect"
	ReasonWrongGroup        = "wrong group"
	ReasonOverridden        = "gate overridden"
	ReasonReserved          = "reserved for the controller"
	ReasonRecordNeeded      = "record of a lost node"

	ReasonReplicasOnNetwork    = "replicas on the network"
	ReasonInstanceManagerInUse = "instance manager in use"
	ReasonIdle                 = "instance manager idle"
	ReasonMayBeReplaced        = "not running or not ready"

	ReasonInvalidNFSService = "invalid NFS service"
	ReasonNFSServiceInUse   = "NFS service in use"
	ReasonInvalidNFSVolume  = "invalid NFS volume"
	ReasonNoNFSService      = "accepted, no such NFS service"
)

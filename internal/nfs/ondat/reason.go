package ondat

import "fmt"

// Reason why a volume is not published. They are the values of a metric's label, so
// there are few of them (the released manager used the text of errors).
type Reason string

const (
	// MissingLabels: the volume does not say which PVC it belongs to.
	MissingLabels Reason = "MissingLabels"
	// InvalidLabels: what it says cannot be the name of an object.
	InvalidLabels Reason = "InvalidLabels"
	// InvalidEndpoint: its server has no address that other nodes reach.
	InvalidEndpoint Reason = "InvalidEndpoint"
	// EndpointOfTwoVolumes: another volume names the same server.
	EndpointOfTwoVolumes Reason = "EndpointOfTwoVolumes"
	// ClaimMissing: its PVC does not exist.
	ClaimMissing Reason = "ClaimMissing"
	// ClaimNotBound: its PVC is not bound to its PV.
	ClaimNotBound Reason = "ClaimNotBound"
	// ClaimTerminating: its PVC is being deleted, and has no Service yet.
	ClaimTerminating Reason = "ClaimTerminating"
	// ClaimOfTwoVolumes: another volume has the Service of its PVC.
	ClaimOfTwoVolumes Reason = "ClaimOfTwoVolumes"
	// InvalidName: neither PVC nor PV have a name that a Service can have.
	InvalidName Reason = "InvalidName"
	// ForeignService: a Service of that name has another owner.
	ForeignService Reason = "ForeignService"
	// AddressUnavailable: clients have mounted a ClusterIP that the Service cannot get.
	AddressUnavailable Reason = "AddressUnavailable"
	// Refused: Kubernetes does not admit the objects (quota, admission, rights).
	Refused Reason = "Refused"
	// WrongFamily: the ClusterIP is of another address family than the server.
	WrongFamily Reason = "WrongFamily"
)

// Refusal is why a volume is not published.
type Refusal struct {
	Reason  Reason
	Message string
}

// Error is the message.
func (r Refusal) Error() string { return r.Message }

// Refuse returns a Refusal.
func Refuse(reason Reason, format string, args ...any) error {
	return Refusal{reason, fmt.Sprintf(format, args...)}
}

// Reasons are all of them.
var Reasons = []Reason{
	MissingLabels, InvalidLabels, InvalidEndpoint, EndpointOfTwoVolumes, ClaimMissing, ClaimNotBound, ClaimTerminating,
	ClaimOfTwoVolumes, InvalidName, ForeignService, AddressUnavailable, Refused, WrongFamily,
}

package frontend

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// State of a frontend after Sync.
type State string

const (
	// Published: the Service has its address, and the slices name the backend.
	Published State = "Published"
	// Deleting: the Service is being deleted. It works until then, and is recreated with its address.
	Deleting State = "ServiceDeleting"
	// Foreign: another owner has a Service of this name. Nothing is published.
	Foreign State = "ForeignService"
	// WrongAddress: the Service has another address than clients have mounted. Nothing is published.
	WrongAddress State = "WrongAddress"
	// Taken: the recorded address cannot be had, since another Service has it. Nothing is published.
	Taken State = "AddressTaken"
)

// Result of Sync.
type Result struct {
	State State
	// ClusterIP of the Service; not valid where nothing is published.
	ClusterIP netip.Addr
	// Message says what is wrong and what to do; empty where State is Published.
	Message string
	// Service says what was done: publish.Keep, Create or Update.
	Service publish.Action
	// Moved: the slices were changed.
	Moved bool
}

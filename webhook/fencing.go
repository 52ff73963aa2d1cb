package webhook

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/mutators"
)

// Fencing is what the gates of fencing are served with.
type Fencing struct {
	config.Fencing
	// Live reads from the API server.
	Live *fencing.HolderReader
	// MayOverride asks the API server whether a user may override the gates of a node.
	MayOverride func(ctx context.Context, user authenticationv1.UserInfo, node string) (bool, error)
	// Draining tells whether the server is about to go: nothing waits then.
	Draining func() bool

	// waits has room for the requests that may wait for a fence at a time.
	waits chan struct{}
}

// maxWaits bounds the requests that wait: each costs a connection and a few reads a second.
const maxWaits = 64

// routes of fencing. Where it is off they let everything pass, which an
// attachment is only where it is marked: else the API server would judge it.
func (f *Fencing) routes(r routes) {
	on := f != nil && f.On()
	if on {
		f.waits = make(chan struct{}, maxWaits)
	}
	serve(r, attachmentMarksPath, true, attachmentMarks())
	serve(r, attachmentsPath, on, f.attachments())
	serve(r, nodesPath, on, f.nodes())
	serve(r, nodeFenceOverridesPath, on, nodeFenceOverrides())
	serve(r, nodeFencesPath, on, f.nodeFences())
	serve(r, workloadPodsPath, on, f.workloadPods())
}

// Reasons why a gate has nothing to say.
const (
	reasonNotProtected = "driver is not protected"
	reasonNotHeld      = mutators.ReasonNotHeld
)

// protects tells whether volumes of a driver are protected.
func (f *Fencing) protects(driver string) bool {
	_, protected := f.Policy().Storages(driver)
	return protected
}

func allowed(reason string) Decision { return Decision{Outcome: outcomeAllowed, Reason: reason} }

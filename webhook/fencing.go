package webhook

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/mutators"
)

// Fencing is what the gates of fencing are served with.
type Fencing struct {
	config.Fencing
	// Live reads from the API server.
	Live *cluster.HolderReader
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
	reasonSwitchedOff  = "switched off"
	reasonNotHeld      = mutators.ReasonNotHeld
)

// policy that is in force for a driver, and why there is none.
func (f *Fencing) policy(ctx context.Context, driver string) (policy fence.Policy, none string, err error) {
	for _, p := range f.Profiles {
		if p.Mode == config.Off || !p.Storage().Serves(driver) {
			continue
		}
		off, err := f.Live.SwitchedOff(ctx, p.Storage())
		if err != nil {
			return policy, "", err
		}
		if off {
			return policy, reasonSwitchedOff, nil
		}
		return f.Policy(func(string) bool { return false }), "", nil
	}
	return policy, reasonNotProtected, nil
}

// inForce tells whether any storage system is protected now.
func (f *Fencing) inForce(ctx context.Context) (bool, error) {
	for _, p := range f.Profiles {
		if p.Mode == config.Off {
			continue
		}
		if off, err := f.Live.SwitchedOff(ctx, p.Storage()); err != nil || !off {
			return err == nil, err
		}
	}
	return false, nil
}

func allowed(reason string) Decision { return Decision{Outcome: outcomeAllowed, Reason: reason} }

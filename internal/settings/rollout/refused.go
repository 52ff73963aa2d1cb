package rollout

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Refusal is a write that the API server refused, for example by a policy or another webhook. The
// object is left alone until the write is tried again; all other work goes on.
type Refusal struct {
	// Kind is a Service, a client or a DaemonSet.
	Kind    catalog.BlockerKind
	Name    string
	Message string
}

func (r Rollout) refusal(kind catalog.BlockerKind, name string) (catalog.Blocker, bool) {
	for _, refused := range r.Record.Refused {
		if refused.Kind == kind && refused.Name == name {
			return catalog.Blocker{Kind: kind, Name: name, Message: refused.Message}, true
		}
	}
	return catalog.Blocker{}, false
}

// replaceable returns the Services that may be replaced now. A Service that was deleted for its replacement is recreated first.
func (r Rollout) replaceable(services []rwx.Service) []rwx.Service {
	if r.Record.Replacing != "" {
		return nil
	}
	return slices.DeleteFunc(services, func(s rwx.Service) bool {
		_, refused := r.refusal(catalog.BlockedByService, s.Name)
		return refused
	})
}

// notReplaced returns why Services that are due are not replaced.
func (r Rollout) notReplaced(services []rwx.Service) []catalog.Blocker {
	var blockers []catalog.Blocker
	for _, s := range services {
		if b, refused := r.refusal(catalog.BlockedByService, s.Name); refused {
			blockers = append(blockers, b)
		}
	}
	return blockers
}

// toRecreate is the Service that was deleted and not recreated yet.
func (r Rollout) toRecreate() []catalog.Blocker {
	if r.Record.Replacing == "" {
		return nil
	}
	b, refused := r.refusal(catalog.BlockedByService, r.Record.Replacing)
	if !refused {
		b = catalog.Blocker{Kind: catalog.BlockedByService, Name: r.Record.Replacing, Message: fmt.Sprintf("Service %s is being recreated", r.Record.Replacing)}
	}
	return []catalog.Blocker{b}
}

// changeTemplate changes the DaemonSet, unless the API server has just refused a change.
func (r Rollout) changeTemplate(s Step, action Action) Step {
	if b, refused := r.refusal(catalog.BlockedByDaemonSet, r.DaemonSet.Name); refused {
		s.Blockers, s.Message = []catalog.Blocker{b}, catalog.Joined(s.Message, b.Message)
		return s
	}
	s.Action = action
	return s
}

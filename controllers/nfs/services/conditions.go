package services

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// Reasons of conditions.
const (
	reasonServing     = "Serving"
	reasonDeleted     = "Deleted"
	reasonLost        = "AddressesLost"
	reasonInvalidSpec = "InvalidSpec"
	reasonNoBackends  = "NoBackends"
	reasonAllDown     = "NoBackendForNewNodes"
	reasonNoneHealthy = "NoHealthyBackend"
	reasonProbing     = "Probing"
	reasonUnreachable = "UnreachableBackends"
	reasonManyFail    = "TooManyFail"
	reasonFewFail     = "ProbesTrusted"
	reasonBalanced    = "Balanced"
	reasonRemount     = "RemountNeeded"
	reasonWaiting     = "WaitingForBackend"
	reasonIdle        = "IdleBackends"
)

// maxNamed is how many nodes, slots and faults a message names.
const maxNamed = 10

func (p *pass) setConditions(status *v1alpha1.NFSServiceStatus, plan assign.Plan, idle []netip.AddrPort) {
	for _, c := range []metav1.Condition{p.ready(status), p.suspected(), p.balanced(plan, idle)} {
		c.ObservedGeneration = p.service.Generation
		c.LastTransitionTime = metav1.NewTime(p.now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
}

// ready reports whether nodes can mount the service.
func (p *pass) ready(status *v1alpha1.NFSServiceStatus) metav1.Condition {
	not := func(reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.NFSReady, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(p.users) > 0 && len(p.faults) > 0:
		return not(reasonLost, "the NFSService is being deleted, and its addresses cannot be kept, as when its namespace is deleted: %s. These nodes have its volumes attached, and what they have mounted hangs: %s. Delete the pods that use them, and create the NFSService in another namespace", p.faultText(), named(p.users))
	case len(p.users) > 0:
		return not(reasonDeleted, "the NFSService is being deleted, and is kept while nodes have its volumes attached: %s. Delete the pods that use them", named(p.users))
	case len(p.problems) > 0:
		return not(reasonInvalidSpec, "the spec has problems, and what was published before stays: %s", p.problemText())
	case len(p.faults) > 0:
		return not(string(p.faults[0].state), "%s", p.faultText())
	case len(p.members) == 0:
		if p.noServer != "" {
			return not(reasonNoBackends, "the service has no backend: Service %s gives none: %s", p.spec.ServerService, p.noServer)
		}
		return not(reasonNoBackends, "the service has no backend: add one to spec.backends, or name a Service of server pods by spec.serverService")
	}
	reached := definition.Reachable(status, p.members)
	if len(reached) == 0 {
		return not(reasonUnreachable, "the service's ClusterIPs have one address family, and all backends the other: add backends of the first, or create another NFSService")
	}
	open, known, healthy := 0, 0, 0
	for _, m := range reached {
		if m.Open() {
			open++
			if m.Health != nfs.Unknown {
				known++
			}
			if m.Health == nfs.Healthy {
				healthy++
			}
		}
	}
	switch {
	case open == 0:
		return not(reasonAllDown, "no backend takes new nodes: all are down or draining. Check the servers, end a drain, or add backends")
	case known == 0:
		c := not(reasonProbing, "the backends are not probed yet")
		c.Status = metav1.ConditionUnknown
		return c
	case healthy == 0 && known == open:
		return not(reasonNoneHealthy, "no backend answers its probes; those that are not taken out stay in use, and nodes are assigned to them. Check the servers, and the network between them and Fairlead")
	}
	return metav1.Condition{Type: v1alpha1.NFSReady, Status: metav1.ConditionTrue, Reason: reasonServing,
		Message: fmt.Sprintf("%d of %d backends are healthy", status.HealthyBackends, status.BackendCount)}
}

func (p *pass) problemText() string {
	var texts []string
	for _, problem := range p.problems {
		texts = append(texts, problem.Error())
	}
	return kit.Clip(strings.Join(texts, "; "), maxCondition)
}

func (p *pass) faultText() string {
	var texts []string
	for _, f := range p.faults {
		texts = append(texts, f.message)
	}
	return kit.Clip(named(texts), maxCondition)
}

// suspected reports whether too many servers fail for the probes to be trusted.
func (p *pass) suspected() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.NFSProberSuspected, Status: metav1.ConditionFalse, Reason: reasonFewFail}
	if guard := p.guard(); guard.Active() {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonManyFail, guard.Message()
	}
	return c
}

// balanced reports whether a node waits for a move, or a healthy server for nodes. A node that has
// mounted a server's own address moves only by remounting, which Fairlead only reports.
func (p *pass) balanced(plan assign.Plan, idle []netip.AddrPort) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.NFSBalanced, Status: metav1.ConditionTrue, Reason: reasonBalanced}
	if len(plan.Moves) == 0 {
		if len(idle) > 0 {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonIdle, p.idleText(idle)
		}
		return c
	}
	var texts []string
	for _, m := range plan.Moves {
		from, to := m.FromAddress, m.ToAddress
		if to == "" {
			to = "no backend yet"
		}
		texts = append(texts, fmt.Sprintf("%s (%s: %s → %s)", m.Node, m.Reason, from, to))
	}
	c.Status, c.Reason = metav1.ConditionFalse, reasonWaiting
	format := "nodes wait for another backend (%d): %s"
	if p.spec.Exposure == nfs.PerNode {
		c.Reason, format = reasonRemount, "nodes would move if they remounted (%d): %s. A node moves once all its pods that use the service have ended"
	}
	c.Message = kit.Clip(fmt.Sprintf(format, len(plan.Moves), named(texts)), maxCondition)
	return c
}

func (p *pass) idleText(idle []netip.AddrPort) string {
	names := make([]string, len(idle))
	for i, a := range idle {
		names[i] = a.String()
	}
	text := fmt.Sprintf("healthy servers without a node (%d): %s. New nodes go to them first; nodes of other zones, when their own servers are above the average", len(idle), named(names))
	if p.spec.Exposure == nfs.PerNodeStable && !p.spec.Excess {
		text += ". To move mounted nodes too, set spec.rebalance: Excess"
	}
	return text
}

// named joins names, the first of many.
func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// maxCondition is the longest message of a condition (metav1.Condition).
const maxCondition = 32768

// warns reports whether a reason needs a warning.
func warns(reason string) bool {
	switch reason {
	case reasonInvalidSpec, reasonAllDown, reasonNoneHealthy, reasonUnreachable, reasonManyFail, reasonDeleted, reasonLost,
		string(frontend.Foreign), string(frontend.WrongAddress), string(frontend.Taken), string(notWritten):
		return true
	}
	return false
}

package fence

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// unmarked asks the API server's own policies (webhook.FencingPolicies, in CEL) about an attachment that Fairlead has not
// judged. They read Nodes and NodeFences, and no PersistentVolume.
func (w *world) unmarked(v Volume, node string) (refused bool) {
	for name, n := range w.nodes {
		if name != node && !(n.ready && !n.taint) && !w.broken.lossOnRecord(n, v) && slices.ContainsFunc(n.inUse, func(u string) bool {
			driver, _, _ := ParseUniqueName(u)
			return driver == v.Driver
		}) {
			return true
		}
	}
	for _, r := range w.records {
		if w.broken.label(r.status) == string(v1alpha1.NodeHealthy) {
			continue
		}
		if w.broken.recordHolds(r.status, v, r.node == node) || r.node == node && fencedItself(r.status) {
			return true
		}
	}
	return false
}

// lossOnRecord is a part of the expression of registration.UnwatchedAttachments.
func lossOnRecord(n worldNode, v Volume) bool {
	mark := strings.Split(n.loss, " ")
	return n.bootID != "" && n.unknown && mark[0] == n.bootID+"@"+n.changed.UTC().Format(time.RFC3339) && !slices.Contains(mark, v.Name)
}

// recordHolds is the expression of registration.UnwatchedVolumes.
func recordHolds(s v1alpha1.NodeFenceStatus, volume Volume, sameNode bool) bool {
	lost := s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing
	return slices.ContainsFunc(s.Volumes, func(v v1alpha1.HeldVolume) bool {
		if v.PersistentVolume != volume.Name || sameNode && !s.Gone {
			return false
		}
		fenced := s.Phase == v1alpha1.NodeFenced || s.Phase == v1alpha1.NodeDrained
		return lost || s.Reason == ReasonTaintedButReady || (v.Until != nil || v.Detached) && (!v.Shared || v.Block || s.Phase != v1alpha1.NodeHealthy) && !fenced
	})
}

// fencedItself is a part of that expression.
func fencedItself(s v1alpha1.NodeFenceStatus) bool {
	return !s.Gone && isFencing(s.Phase) && wasRequested(s)
}

// attachUnmarked is the attach-detach controller asking for an attachment while the webhook does not answer.
func (w *world) attachUnmarked(t *rapid.T, v Volume, node string) {
	if w.mayAsk(v, node) && !w.unmarked(v, node) {
		w.mustNotBeWritable(t, v, node)
		w.attachments = append(w.attachments, attachment{v.Name, node, w.nodes[node].bootID})
	}
}

// policiesMustRelease what is fenced, however its node was before.
func (w *world) policiesMustRelease(t *rapid.T) {
	for name, r := range w.records {
		if r.status.Phase != v1alpha1.NodeFenced && r.status.Phase != v1alpha1.NodeDrained {
			continue
		}
		for _, v := range worldVolumes {
			w.must(t, !w.broken.recordHolds(r.status, v, false), "%s is %s, and the policies hold %s", name, r.status.Phase, v.Name)
		}
	}
}

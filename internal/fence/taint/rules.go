package taint

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// NoTaintAnnotation on a Node, with the value "true", keeps it from being tainted automatically.
const NoTaintAnnotation = "fairlead.io/no-automatic-taint"

// Reasons of a Verdict, beside fence.ReasonNothingHeld, fence.ReasonSwitchedOff and those for
// which a fence is refused.
const (
	ReasonLost           = "Lost"           // not a refusal: to be tainted
	ReasonTaintingOff    = "TaintingOff"    // by the configuration
	ReasonPaused         = "Paused"         // by Switch
	ReasonControlPlane   = "ControlPlane"   // never tainted automatically
	ReasonNotSelected    = "NotSelected"    // by the configuration
	ReasonOptedOut       = "OptedOut"       // by NoTaintAnnotation
	ReasonAlreadyTainted = "AlreadyTainted" // by any party
	ReasonTaintTaken     = "TaintTaken"     // Fairlead's taint was removed
	ReasonCordoned       = "Cordoned"       // an operator works on it
	ReasonLeaving        = "Leaving"        // its object is being deleted
	ReasonKubeletAlive   = "KubeletAlive"   // not Ready, and not lost
	ReasonNotYet         = "NotYet"         // not lost for long enough
	ReasonNotRecorded    = "NotRecorded"    // Fairlead has no record of its loss
	ReasonUnderWay       = "UnderWay"       // being fenced or unfenced
	ReasonUnprotected    = "Unprotected"    // others' volumes would be detached by force
	ReasonStaleView      = "StaleView"      // Fairlead itself may be cut off
	ReasonStorm          = "Storm"          // many were lost at once
	ReasonZoneShare      = "ZoneShare"      // too much of its zone is lost
	ReasonTooManyTainted = "TooManyTainted" // others come first
	ReasonSinceUnknown   = "SinceUnknown"   // the time of the loss is unknown
	ReasonCheckFailed    = "CheckFailed"    // a reading failed
)

// refuse returns the first reason not to taint a node. Reasons of the node itself come first: its operator can act on
// them.
func (j *judge) refuse(n Candidate) *fence.Refusal {
	rules := []func(Candidate) *fence.Refusal{
		j.controlPlane, j.notSelected, j.tainted, j.handled,
		j.alive, j.notYet,
		j.notRecorded, j.nothingHeld, j.unprotected, j.unfenceable,
		j.switchedOff,
	}
	if !j.glance {
		rules = append(rules, j.staleView)
	}
	for _, rule := range append(rules, j.storm, j.zone, j.tooMany) {
		if refusal := rule(n); refusal != nil {
			return refusal
		}
	}
	return nil
}

// controlPlaneLabels: those of kubeadm, of before Kubernetes 1.24, and of Rancher's distributions.
var controlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/controlplane", "node-role.kubernetes.io/etcd",
}

// controlPlane: its pods do not depend on a release by Kubernetes, and fencing may need the node.
func (j *judge) controlPlane(n Candidate) *fence.Refusal {
	for _, label := range controlPlaneLabels {
		if _, has := n.Labels[label]; has {
			return fence.Refuse(ReasonControlPlane, "node %s is one of the control plane (label %s): those are never tainted automatically", n.Node.Name, label)
		}
	}
	return nil
}

func (j *judge) notSelected(n Candidate) *fence.Refusal {
	switch {
	case !j.NodeSelector.Matches(labels.Set(n.Labels)):
		return fence.Refuse(ReasonNotSelected, "node %s is not selected by %q", n.Node.Name, j.NodeSelector)
	case n.OptedOut:
		return fence.Refuse(ReasonOptedOut, "node %s has the annotation %s", n.Node.Name, NoTaintAnnotation)
	}
	return nil
}

// tainted: a node is tainted once in an incident. Removing the taint is an operator's decision.
func (j *judge) tainted(n Candidate) *fence.Refusal {
	s := n.Spec
	switch {
	case n.Node.OutOfService:
		return fence.Refuse(ReasonAlreadyTainted, "node %s has the taint %s already", n.Node.Name, fence.OutOfServiceTaint)
	case n.Given || s.Tainted != nil && (s.LostSince == nil || !s.Tainted.Before(s.LostSince)):
		return fence.Refuse(ReasonTaintTaken, "node %s was tainted automatically once since it was lost, and the taint was removed: it is not tainted again", n.Node.Name)
	}
	return nil
}

// handled: an operator works on a node that is cordoned or being deleted. Fenced, it would need a reboot before it
// returns. Kubernetes itself cordons no node, and an operator who cordons can taint.
func (j *judge) handled(n Candidate) *fence.Refusal {
	switch {
	case n.Deleting:
		return fence.Refuse(ReasonLeaving, "node %s is being deleted; once it is gone, it is fenced", n.Node.Name)
	case n.Cordoned:
		return fence.Refuse(ReasonCordoned, "node %s is cordoned, so an operator works on it: uncordon it, or taint it by hand", n.Node.Name)
	}
	return nil
}

// alive: only a silent node is lost. A kubelet that reports Ready=False still ends pods itself; after a taint,
// Kubernetes would not wait for that. When it falls silent, the node controller sets Unknown within a minute
// (node-monitor-grace-period, 50 s). Unknown alone is not enough: a returning node renews its lease first.
func (j *judge) alive(n Candidate) *fence.Refusal {
	if !n.Node.Unknown {
		return fence.Refuse(ReasonKubeletAlive, "the kubelet of node %s reports that the node is not Ready, so the node is not lost", n.Node.Name)
	}
	if j.recent(n.Heartbeat) {
		return fence.Refuse(ReasonKubeletAlive, "the kubelet of node %s sent a heartbeat at %s: the node is coming back", n.Node.Name, n.Heartbeat.UTC().Format(time.RFC3339))
	}
	return nil
}

func (j *judge) notYet(n Candidate) *fence.Refusal {
	since := j.since(n)
	switch {
	case since.IsZero():
		return fence.Refuse(ReasonSinceUnknown, "the time of the loss of node %s is unknown", n.Node.Name)
	case j.Now.Sub(since) < j.NotReadyFor:
		return fence.Refuse(ReasonNotYet, "node %s is lost since %s; it is tainted after %s", n.Node.Name, since.UTC().Format(time.RFC3339), j.NotReadyFor)
	}
	return nil
}

// notRecorded: volumes are held and fenced by the node's record. Where the record lacks the loss, the fencing
// controller is not running.
func (j *judge) notRecorded(n Candidate) *fence.Refusal {
	switch {
	case len(n.Spec.Fences) > 0:
		return fence.Refuse(ReasonUnderWay, "NodeFence %s has fences already", n.Record)
	case n.Spec.LostSince == nil:
		return fence.Refuse(ReasonNotRecorded, "the loss of node %s is not on record (NodeFence %s): nothing holds its volumes yet", n.Node.Name, cmp.Or(n.Record, "missing"))
	}
	return nil
}

// nothingHeld: Kubernetes evicts the pods by itself, and no volume waits for a fence.
func (j *judge) nothingHeld(n Candidate) *fence.Refusal {
	switch {
	case len(n.Spec.Volumes) == 0:
		return fence.Refuse(fence.ReasonNothingHeld, "no protected volume is on node %s", n.Node.Name)
	case !slices.ContainsFunc(n.Spec.Volumes, func(v v1alpha1.HeldVolume) bool { return j.Policy.Mode(v.Driver) != fence.ModeOff }):
		return fence.Refuse(fence.ReasonSwitchedOff, "fencing is switched off for the volumes that are on node %s", n.Node.Name)
	}
	return nil
}

// unprotected: the taint affects the whole node. Volumes of unfenced drivers are detached by force too, and may then
// have two writers.
func (j *judge) unprotected(n Candidate) *fence.Refusal {
	var drivers []string
	for _, driver := range n.Drivers {
		if j.Policy.Mode(driver) == fence.ModeOff && !slices.Contains(j.ForceDetach, driver) && !slices.Contains(drivers, driver) {
			drivers = append(drivers, driver)
		}
	}
	if len(drivers) == 0 {
		return nil
	}
	slices.Sort(drivers)
	return fence.Refuse(ReasonUnprotected, "volumes of %s are on node %s too, which Fairlead does not fence and Kubernetes would detach by force: taint the node by hand when it is off", fence.Few(drivers), n.Node.Name)
}

// unfenceable: the taint would delete the node's pods while their volumes stay held, which gains nothing.
func (j *judge) unfenceable(n Candidate) *fence.Refusal {
	if n.Refused != nil {
		return n.Refused
	}
	f := fence.Facts{Now: j.Now, Record: n.Record, Node: n.Node, Spec: n.Spec, Policy: j.Policy}
	for _, o := range j.Nodes {
		if o.Node.Name != n.Node.Name {
			f.Machines = append(f.Machines, fence.Other{Record: o.Record, Node: o.Node, Spec: o.Spec})
		}
	}
	return fence.Unfenceable(f)
}

func (j *judge) switchedOff(n Candidate) *fence.Refusal {
	switch {
	case j.Mode != On && j.Mode != DryRun:
		return fence.Refuse(ReasonTaintingOff, "automatic tainting is off")
	case j.Paused:
		return fence.Refuse(ReasonPaused, "automatic tainting is paused by %s in ConfigMap %s", SwitchKey, SwitchConfigMap)
	}
	return nil
}

// zone: where much of a zone is lost, the zone itself may be cut off while its nodes run. A zone of two nodes never has
// one to spare.
func (j *judge) zone(n Candidate) *fence.Refusal {
	name := zoneOf(n)
	all, gone := 0, 0
	for _, o := range j.Nodes {
		if !o.Node.Exists || zoneOf(o) != name {
			continue
		}
		all++
		if !o.Node.Ready || o.Node.OutOfService {
			gone++
		}
	}
	if gone*100 <= j.MaxShare*all {
		return nil
	}
	return fence.Refuse(ReasonZoneShare, "%d of %d nodes of zone %q are not Ready or tainted, more than %d %%: it may be the zone that is lost; taint node %s by hand when it is off", gone, all, name, j.MaxShare, n.Node.Name)
}

// zoneLabel is k8s.io/api/core/v1.LabelTopologyZone; nodes without it are one zone.
const zoneLabel = "topology.kubernetes.io/zone"

func zoneOf(n Candidate) string { return n.Labels[zoneLabel] }

// tooMany bounds the damage of a wrong judgement until an operator looks.
func (j *judge) tooMany(n Candidate) *fence.Refusal {
	others := len(j.own)
	if j.own[n.Node.Name] {
		others--
	}
	if others < j.MaxNodes {
		return nil
	}
	return fence.Refuse(ReasonTooManyTainted, "%d nodes are tainted automatically already, %d at most: taint node %s by hand when it is off", others, j.MaxNodes, n.Node.Name)
}

// ownTaints counts a node from Fairlead's taint until it is healthy again, so that removing a taint makes no room for
// the next. A deleted node does not count.
func (j *judge) ownTaints() map[string]bool {
	own := map[string]bool{}
	for _, n := range j.Nodes {
		if n.Node.Exists && (n.Node.OwnTaint || n.Given || n.Spec.Tainted != nil) {
			own[n.Node.Name] = true
		}
	}
	return own
}

package tainting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// view is one reading of the cluster.
type view struct {
	facts taint.Facts
	// nodes, and the records of their machines, by node name.
	nodes   map[string]*corev1.Node
	records map[string]*v1alpha1.NodeFence
}

// gather reads nodes and their records.
func (r *Reconciler) gather(ctx context.Context, reader client.Reader) (*view, error) {
	v := &view{nodes: map[string]*corev1.Node{}, records: map[string]*v1alpha1.NodeFence{}}
	var nodeList corev1.NodeList
	if err := reader.List(ctx, &nodeList, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var nodes []fence.Node
	for i := range nodeList.Items {
		n := &nodeList.Items[i]
		v.nodes[n.Name], nodes = n, append(nodes, fencingreads.FenceNode(n))
	}
	var recordList v1alpha1.NodeFenceList
	if err := reader.List(ctx, &recordList, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes' fences: %w", err)
	}
	var records []fence.Record
	objects := map[string]*v1alpha1.NodeFence{}
	for i := range recordList.Items {
		n := &recordList.Items[i]
		objects[n.Name], records = n, append(records, fencingreads.FenceRecord(n))
	}
	byName := fence.ByName(nodes, records)
	for _, node := range nodes {
		n := candidate(node, v.nodes[node.Name])
		if record, present := byName[node.Name].Present(); present {
			n.Record, n.Spec, v.records[node.Name] = record.Name, record.Spec, objects[record.Name]
		}
		v.facts.Nodes = append(v.facts.Nodes, n)
	}
	v.facts.Policy, v.facts.Now = r.Policy, r.Clock.Now()
	return v, nil
}

// addLive adds what only the second look reads: the switch, the times of the nodes' leases, and the taints that Fairlead has
// written. In a stale cache such a taint would seem to be removed by an operator.
func (r *Reconciler) addLive(ctx context.Context, v *view) error {
	var switches corev1.ConfigMap
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: taint.SwitchNamespace, Name: taint.SwitchConfigMap}, &switches)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the switch of automatic tainting: %w", err)
	}
	v.facts.Paused = taint.IsSwitchedOff(switches.Data)
	leases, err := fencingreads.NodeLeases(ctx, r.Live)
	if err != nil {
		return err
	}
	for i := range v.facts.Nodes {
		n := &v.facts.Nodes[i]
		n.Given = n.Spec.LostSince != nil && r.given[n.Node.Name] == incident(v, n.Node.Name, time.Time{})
		if at := leases[n.Node.Name].RenewTime; at != nil && at.After(n.Heartbeat) {
			n.Heartbeat = at.Time
		}
	}
	return nil
}

func candidate(is fence.Node, node *corev1.Node) taint.Candidate {
	n := taint.Candidate{
		Node:     is,
		Labels:   node.Labels,
		Created:  node.CreationTimestamp.Time,
		Cordoned: node.Spec.Unschedulable, Deleting: node.DeletionTimestamp != nil,
		OptedOut: node.Annotations[taint.NoTaintAnnotation] == "true",
	}
	if !is.Ready { // only lost nodes are judged
		n.Drivers = driversOn(is)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Heartbeat = c.LastHeartbeatTime.Time
		}
	}
	return n
}

// driversOn lists the drivers of the volumes in a node's status. A volume without a CSI driver
// counts by its plugin, like kubernetes.io/iscsi.
func driversOn(node fence.Node) (drivers []string) {
	for _, name := range slices.Concat(node.InUse, node.Attached) {
		driver, _, ok := fence.ParseUniqueName(name)
		if parts := strings.SplitN(name, "/", 3); !ok && len(parts) == 3 {
			driver = parts[0] + "/" + parts[1]
		} else if !ok {
			driver = name
		}
		drivers = append(drivers, driver)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

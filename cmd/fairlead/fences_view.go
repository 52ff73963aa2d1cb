package main

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence/advice"
)

// fenceViews is what `fairlead fences -o json` prints. Fields are added, never
// renamed or taken away; lists are whole, and never null.
type fenceViews struct {
	Data []fenceView `json:"data"`
}

// fenceView is one NodeFence.
type fenceView struct {
	Node string `json:"node"`
	// Record is the name of the NodeFence.
	Record  string `json:"record"`
	Phase   string `json:"phase"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// WaitsFor in a few words; "" is nothing.
	WaitsFor string `json:"waitsFor"`
	// Next is what to type or do next, and OnlyIf what must be so before.
	Next   string `json:"next"`
	OnlyIf string `json:"onlyIf,omitempty"`
	// LostSince is when the node was first seen lost, in this incident.
	LostSince *time.Time     `json:"lostSince,omitempty"`
	Addresses []fenceAddress `json:"addresses"`
	Volumes   []fenceVolume  `json:"volumes"`
	Fences    []fenceOfView  `json:"fences"`
}

// fenceAddress is one address by which a storage system knows the node, or why none is known.
type fenceAddress struct {
	Driver    string `json:"driver"`
	ClusterID string `json:"clusterID"`
	CIDR      string `json:"cidr,omitempty"`
	// Source that the address was read from, and when it was last reported.
	Source   string     `json:"source,omitempty"`
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Earlier: the source reports another address now.
	Earlier bool `json:"earlier"`
	// Class or Secret that a fence is made with.
	Class   string `json:"class,omitempty"`
	Secret  string `json:"secret,omitempty"`
	Problem string `json:"problem,omitempty"`
}

type fenceVolume struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	ClusterID string `json:"clusterID"`
	Shared    bool   `json:"shared"`
	// Waiting: the kubelet waits for the volume, and it is not attached yet.
	Waiting bool `json:"waiting"`
	// Detached by force, and still in use on the node.
	Detached bool `json:"detached"`
	// Until then the volume is held although the node shows it no more.
	Until *time.Time `json:"until,omitempty"`
}

// fenceOfView is a NetworkFence that was asked for.
type fenceOfView struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	CIDRs   []string `json:"cidrs"`
	Class   string   `json:"class,omitempty"`
	Message string   `json:"message,omitempty"`
}

func viewOfFence(record *v1alpha1.NodeFence) fenceView {
	s, node := record.Status, fencing.NodeOfFence(record)
	a := advice.Of(record.Name, node, s)
	v := fenceView{
		Node: node, Record: record.Name, Phase: string(s.Phase), Reason: s.Reason, Message: s.Message, WaitsFor: a.WaitsFor, Next: a.Next, OnlyIf: a.OnlyIf,
		LostSince: timeOf(s.LostSince), Addresses: []fenceAddress{}, Volumes: []fenceVolume{}, Fences: []fenceOfView{},
	}
	for _, i := range s.Identities {
		v.Addresses = append(v.Addresses, addressesOf(i)...)
	}
	for _, h := range s.Volumes {
		v.Volumes = append(v.Volumes, fenceVolume{h.PersistentVolume, h.Driver, h.ClusterID, h.Shared, h.Waiting, h.Detached, timeOf(h.Until)})
	}
	for _, f := range s.Fences {
		v.Fences = append(v.Fences, fenceOfView{f.Name, f.State, f.CIDRs, f.Class, f.Message})
	}
	return v
}

// addressesOf an identity; one without an address says why.
func addressesOf(i v1alpha1.StorageIdentity) []fenceAddress {
	common := fenceAddress{Driver: i.Driver, ClusterID: i.ClusterID, Class: i.Class, Problem: i.Problem}
	if i.Secret != nil {
		common.Secret = i.Secret.Namespace + "/" + i.Secret.Name
	}
	if len(i.Addresses) == 0 {
		return []fenceAddress{common}
	}
	var all []fenceAddress
	for _, a := range i.Addresses {
		one := common
		one.CIDR, one.Source, one.LastSeen, one.Earlier = a.CIDR, a.Source, timeOf(&a.LastSeen), a.Earlier
		all = append(all, one)
	}
	return all
}

func timeOf(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// before orders what needs a person first: incidents, then healthy nodes with a reason to look at, then the others.
func (v fenceView) before(o fenceView) int {
	return cmp.Or(cmp.Compare(v.rank(), o.rank()), cmp.Compare(v.Node, o.Node), cmp.Compare(v.Record, o.Record))
}

func (v fenceView) rank() int {
	switch {
	case v.Phase != string(v1alpha1.NodeHealthy):
		return 0
	case v.WaitsFor != "":
		return 1
	}
	return 2
}

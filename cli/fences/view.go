package fences

import (
	"cmp"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/advice"
)

// viewList is what `fairlead fences -o json` prints. Fields are added, never
// renamed or removed; lists are whole, and never null.
type viewList struct {
	Data []View `json:"data"`
}

// View is one NodeFence.
type View struct {
	Node string `json:"node"`
	// Record is the name of the NodeFence.
	Record string `json:"record"`
	// Phase of the record; Unknown if the record is old, since no controller of Fairlead leads.
	Phase   string `json:"phase"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// LastError is why the API server refused Fairlead's last write for the node.
	LastError string `json:"lastError,omitempty"`
	// WaitsFor says in a few words what the fence waits for; "" if nothing.
	WaitsFor string `json:"waitsFor"`
	// Next is what to type or do next, and OnlyIf the precondition.
	Next   string `json:"next"`
	OnlyIf string `json:"onlyIf,omitempty"`
	// LostSince is when the node was first seen lost, in this incident.
	LostSince *time.Time `json:"lostSince,omitempty"`
	Addresses []Address  `json:"addresses"`
	Volumes   []Volume   `json:"volumes"`
	Fences    []Fence    `json:"fences"`
	// boot that the record is of.
	boot v1alpha1.Boot
	// mayWrite to volumes that a person has released.
	mayWrite bool
}

// Address is one address by which a storage system knows the node, or why none is known.
type Address struct {
	Driver    string `json:"driver"`
	ClusterID string `json:"clusterID"`
	CIDR      string `json:"cidr,omitempty"`
	// Source that the address was read from, and when it was last reported.
	Source   string     `json:"source,omitempty"`
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Earlier: the source reports another address now.
	Earlier bool `json:"earlier"`
	// Class or Secret of a fence.
	Class   string `json:"class,omitempty"`
	Secret  string `json:"secret,omitempty"`
	Problem string `json:"problem,omitempty"`
}

type Volume struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	ClusterID string `json:"clusterID"`
	Shared    bool   `json:"shared"`
	// Released by a person, while the machine is lost.
	Released bool `json:"released"`
	// Until is the end of the hold on a volume after the node came back without a reboot.
	Until *time.Time `json:"until,omitempty"`
}

// Fence is a requested NetworkFence.
type Fence struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	CIDRs   []string `json:"cidrs"`
	Class   string   `json:"class,omitempty"`
	Message string   `json:"message,omitempty"`
}

func viewOfFence(record *v1alpha1.NodeFence) View {
	s, memory, node := record.Status, record.Spec, record.Spec.NodeName
	judged := s
	mayWrite := s.Phase == v1alpha1.NodeHealthy && slices.ContainsFunc(memory.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Released })
	if mayWrite {
		judged.Reason = fence.ReasonOldMounts // it is not the taint that is to go
	}
	a := advice.Of(record.Name, node, judged)
	v := View{
		Node: node, Record: record.Name, Phase: string(s.Phase), Reason: s.Reason, Message: s.Message, LastError: s.LastError, WaitsFor: a.WaitsFor, Next: a.Next, OnlyIf: a.OnlyIf,
		LostSince: cli.TimeOf(memory.LostSince), Addresses: []Address{}, Volumes: []Volume{}, Fences: []Fence{},
		boot: memory.Boot, mayWrite: mayWrite,
	}
	for _, i := range memory.Identities {
		v.Addresses = append(v.Addresses, addressesOf(i)...)
	}
	for _, h := range memory.Volumes {
		v.Volumes = append(v.Volumes, Volume{h.PersistentVolume, h.Driver, h.ClusterID, h.Shared, h.Released, cli.TimeOf(h.Until)})
	}
	for _, f := range memory.Fences {
		v.Fences = append(v.Fences, Fence{f.Name, f.State, f.CIDRs, f.Class, f.Message})
	}
	return v
}

// addressesOf an identity. An identity without addresses has one entry with the reason.
func addressesOf(i v1alpha1.StorageIdentity) []Address {
	common := Address{Driver: i.Driver, ClusterID: i.ClusterID, Class: i.Class, Problem: i.Problem}
	if i.Secret != nil {
		common.Secret = i.Secret.Namespace + "/" + i.Secret.Name
	}
	if len(i.Addresses) == 0 {
		return []Address{common}
	}
	var all []Address
	for _, a := range i.Addresses {
		one := common
		one.CIDR, one.Source, one.LastSeen, one.Earlier = a.CIDR, a.Source, cli.TimeOf(&a.LastSeen), a.Earlier
		all = append(all, one)
	}
	return all
}

// before orders by urgency: incidents, then healthy nodes with a reason to look at, then other nodes.
func (v View) before(o View) int {
	return cmp.Or(cmp.Compare(v.rank(), o.rank()), cmp.Compare(v.Node, o.Node), cmp.Compare(v.Record, o.Record))
}

// IsLost reports whether the node is lost, has not been readmitted yet, may be lost by an old record, or is back with old
// mounts of volumes that others may have now. A record without a phase is new.
func (v View) IsLost() bool {
	return v.Phase != "" && v.Phase != string(v1alpha1.NodeHealthy) || v.MayWrite()
}

// MayWrite reports whether the node is Ready with old mounts of volumes that others may have now.
func (v View) MayWrite() bool {
	return v.Reason == fence.ReasonOldMounts || v.mayWrite
}

func (v View) rank() int {
	switch {
	case v.IsLost():
		return 0
	case v.WaitsFor != "":
		return 1
	}
	return 2
}

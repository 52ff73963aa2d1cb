package nfs

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
)

// nfsViews is what `fairlead nfs -o json` prints. Fields are added, never renamed
// or removed; lists are whole, and never null.
type nfsViews struct {
	Data []View `json:"data"`
}

// View is one NFSService.
type View struct {
	// Service is <namespace>/<name>.
	Service  string `json:"service"`
	Exposure string `json:"exposure"`
	// Address of exposure Stable, and the backend that it points to.
	Address string `json:"address,omitempty"`
	Backend string `json:"backend,omitempty"`
	// Ready is the condition's status: True, False or Unknown.
	Ready      string      `json:"ready"`
	Message    string      `json:"message"`
	Conditions []Condition `json:"conditions"`
	// Problems of the spec, as admission reports them.
	Problems []string `json:"problems"`
	// Volumes are the PersistentVolumes of the service.
	Volumes  []string  `json:"volumes"`
	Backends []Backend `json:"backends"`
	Slots    []Slot    `json:"slots"`
	Nodes    []Node    `json:"nodes"`
	// Waiting are attachments without an address yet.
	Waiting []Waiting `json:"waiting"`
}

type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Backend is one server. The controller recorded Health, Since and LastError;
// Nodes is counted from VolumeAttachments.
type Backend struct {
	Address   string     `json:"address"`
	Source    string     `json:"source"`
	Zone      string     `json:"zone"`
	Weight    int32      `json:"weight"`
	Drain     bool       `json:"drain"`
	Health    string     `json:"health"`
	Since     *time.Time `json:"since,omitempty"`
	Nodes     int        `json:"nodes"`
	Slots     int        `json:"slots"`
	LastError string     `json:"lastError"`
}

type Slot struct {
	Slot    int    `json:"slot"`
	Address string `json:"address"`
	Backend string `json:"backend"`
	Nodes   int    `json:"nodes"`
}

// Node is a node with an attached volume of the service.
type Node = plan.Node

type Waiting struct {
	Node   string `json:"node"`
	Volume string `json:"volume"`
}

func viewOfNFS(s *v1alpha1.NFSService, state nfsState) View {
	v := View{
		Service: s.Namespace + "/" + s.Name, Exposure: string(state.Service.Exposure), Address: s.Status.Address, Backend: s.Status.Backend, Ready: "Unknown",
		Conditions: []Condition{}, Problems: []string{}, Volumes: append([]string{}, state.use.Volumes...),
		Backends: []Backend{}, Slots: []Slot{}, Nodes: state.Explain(), Waiting: []Waiting{},
	}
	if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.NFSReady); ready != nil {
		v.Ready, v.Message = string(ready.Status), ready.Message
	}
	for _, c := range s.Status.Conditions {
		v.Conditions = append(v.Conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message})
	}
	for _, p := range state.Problems {
		v.Problems = append(v.Problems, p.Error())
	}
	slots := map[string]int{}
	for i, slot := range state.Slots {
		backend := addrText(slot.Backend)
		slots[backend]++
		v.Slots = append(v.Slots, Slot{i, s.Status.Slots[i].Address, backend, slot.Nodes})
	}
	nodes := map[string]int{}
	for _, l := range state.Loads() {
		nodes[l.Addr.String()] = l.Nodes
	}
	for _, b := range s.Status.Backends {
		v.Backends = append(v.Backends, Backend{b.Address, b.Source, b.Zone, b.Weight, b.Drain, b.Health, cli.TimeOf(b.Since), nodes[b.Address], slots[b.Address], b.LastError})
	}
	for _, a := range state.use.Attachments {
		if a.Address == "" && !a.Detaching {
			v.Waiting = append(v.Waiting, Waiting{a.Node, a.PersistentVolume})
		}
	}
	return v
}

func addrText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

package status

import (
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// View is the output of `fairlead status -o json`. Fields are added, never renamed or removed;
// lists are complete, and never null.
type View struct {
	// State is the worst state of all parts: ok, waiting or wrong.
	State       datapath.State `json:"state"`
	Profiles    []ProfileView  `json:"profiles"`
	LostNodes   []LostNode     `json:"lostNodes"`
	NFSServices []NFSService   `json:"nfsServices"`
	// Notes say what could not be read, and why.
	Notes []string `json:"notes"`
}

// ProfileView is one storage system.
type ProfileView struct {
	Profile   string         `json:"profile"`
	Namespace string         `json:"namespace"`
	State     datapath.State `json:"state"`
	Network   NetworkView    `json:"network"`
	// Applied settings of the danger zone, and Waiting ones.
	Applied int          `json:"applied"`
	Waiting []v1.Setting `json:"waiting"`
	// Progress of the Waiting settings, as the controller reported it.
	Progress []Progress `json:"progress"`
	// Volumes are the shared ones.
	Volumes []VolumeView `json:"volumes"`
	// settings of the danger zone; `fairlead settings -o json` has them.
	settings []v1.Setting
}

// Settings of the danger zone, in the order of the catalog.
func (p ProfileView) Settings() []v1.Setting { return p.settings }

// Progress counts the components of one kind that are built with a setting's value.
type Progress struct {
	Setting string `json:"setting"`
	Kind    string `json:"kind"`
	Updated int    `json:"updated"`
	Total   int    `json:"total"`
}

// NetworkView is the roll-out of the network for RWX volumes, as the controller reported it. Networks
// are <namespace>/<name>@<interface>; empty is the cluster network.
type NetworkView struct {
	Desired string `json:"desired"`
	Clients string `json:"clients"`
	Servers string `json:"servers"`
	Phase   string `json:"phase"`
	Message string `json:"message"`
	// Updated client pods, of the Total that there should be.
	Updated int `json:"updated"`
	Total   int `json:"total"`
}

// VolumeView is one shared volume and its data path.
type VolumeView struct {
	Volume    string   `json:"volume"`
	Attached  bool     `json:"attached"`
	Nodes     []string `json:"nodes"`
	Workloads []string `json:"workloads"`
	// Network of the volume now, empty for the cluster network; absent before the first attachment.
	Network *string `json:"network,omitempty"`
	Wanted  string  `json:"wanted"`
	// Server addresses that clients mount.
	Server   []string       `json:"server"`
	State    datapath.State `json:"state"`
	WaitsFor string         `json:"waitsFor"`
	Hops     []HopView      `json:"hops"`
}

type HopView struct {
	Kind      datapath.Kind  `json:"kind"`
	Name      string         `json:"name"`
	Node      string         `json:"node,omitempty"`
	Network   string         `json:"network"`
	Addresses []string       `json:"addresses"`
	State     datapath.State `json:"state"`
	Message   string         `json:"message"`
	Command   string         `json:"command"`
}

// LostNode is a node whose NodeFence is not Healthy.
type LostNode struct {
	Node      string     `json:"node"`
	Phase     string     `json:"phase"`
	LostSince *time.Time `json:"lostSince,omitempty"`
	WaitsFor  string     `json:"waitsFor"`
	Next      string     `json:"next"`
}

type NFSService struct {
	// Service is <namespace>/<name>.
	Service string `json:"service"`
	// Ready is the condition's status: True, False or Unknown.
	Ready    string         `json:"ready"`
	Message  string         `json:"message"`
	Backends int            `json:"backends"`
	Healthy  int            `json:"healthy"`
	State    datapath.State `json:"state"`
}

func viewOf(p datapath.Path) VolumeView {
	v := VolumeView{
		Volume: p.Volume, Attached: p.Attached, Nodes: append([]string{}, p.Nodes...), Workloads: append([]string{}, p.Workloads...),
		Wanted: p.Wanted.String(), Server: []string{}, State: p.State, WaitsFor: p.WaitsFor, Hops: []HopView{},
	}
	if p.Created {
		network := p.Network.String()
		v.Network = &network
	}
	for _, h := range p.Hops {
		v.Hops = append(v.Hops, HopView{h.Kind, h.Name, h.Node, h.Network.String(), append([]string{}, h.Addresses...), h.State, h.Message, h.Command})
		if h.Kind == datapath.Addresses || h.Kind == datapath.Service && len(h.Addresses) > 0 {
			v.Server = append(v.Server, h.Addresses...)
		}
	}
	return v
}

// NetworkName of a text that Attachment.String wrote.
func NetworkName(text string) string {
	a, err := storage.ParseAttachment(text)
	switch {
	case err != nil:
		return text
	case a.IsZero():
		return "cluster network"
	}
	return a.Network.String()
}

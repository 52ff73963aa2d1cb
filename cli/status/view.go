package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// View is the output of `fairlead status -o json`. Fields are added, never renamed or removed;
// lists are complete, and never null.
type View struct {
	// State is the worst state of all parts: ok, waiting or wrong.
	State datapath.State `json:"state"`
	// Installation is the state of Fairlead itself.
	Installation installation.Health `json:"installation"`

	// Longhorn is absent if Fairlead does nothing for Longhorn.
	Longhorn    *LonghornView `json:"longhorn,omitempty"`
	LostNodes   []LostNode    `json:"lostNodes"`
	NFSServices []NFSService  `json:"nfsServices"`
	// Windows are the maintenance windows; absent if none is configured.
	Windows *Windows `json:"windows,omitempty"`
	// Notes say what could not be read, and why.
	Notes []string `json:"notes"`
	// nodes are all NodeFences; `fairlead fences -o json` has them.
	nodes []fences.View
}

// Nodes are the nodes with a NodeFence, the urgent ones first.
func (v View) Nodes() []fences.View { return v.nodes }

// Windows are the configured maintenance windows.
type Windows struct {
	Configured []string `json:"configured"`
	// Opens is when the next window opens; absent while one is open.
	Opens *time.Time `json:"opens,omitempty"`
}

// OpensText is Opens in UTC.
func (w Windows) OpensText() string { return w.Opens.UTC().Format(time.RFC3339) }

// windowsOf a configuration; nil if it has none.
func windowsOf(c *config.Longhorn, now time.Time) *Windows {
	if len(c.MaintenanceWindows) == 0 {
		return nil
	}
	w := &Windows{}
	for _, m := range c.MaintenanceWindows {
		w.Configured = append(w.Configured, fmt.Sprintf("%s %s for %s (%s)", cmp.Or(strings.Join(m.Days, ", "), "every day"), m.Start, m.Length.Duration, cmp.Or(m.TimeZone, "UTC")))
	}
	if closed := c.Policy().Windows.Closed(now); closed > 0 {
		opens := now.Add(closed).UTC().Truncate(time.Minute)
		w.Opens = &opens
	}
	return w
}

// LonghornView is what Fairlead does for Longhorn.
type LonghornView struct {
	Namespace string         `json:"namespace"`
	State     datapath.State `json:"state"`
	Network   NetworkView    `json:"network"`
	// Applied settings of the danger zone, and Waiting ones.
	Applied int          `json:"applied"`
	Waiting []v1.Setting `json:"waiting"`
	// Progress of the Waiting settings, as the controller reported it.
	Progress []Progress `json:"progress"`
	// Volumes are the shared ones.
	Volumes []datapath.Path `json:"volumes"`
	// settings of the danger zone; `fairlead settings -o json` has them.
	settings []v1.Setting
}

// Settings of the danger zone, in the order of the catalog.
func (l LonghornView) Settings() []v1.Setting { return l.settings }

// Attached counts the volumes that are attached.
func (l LonghornView) Attached() int {
	return l.count(func(v datapath.Path) bool { return v.Attached })
}

// In counts the volumes in a state.
func (l LonghornView) In(state datapath.State) int {
	return l.count(func(v datapath.Path) bool { return v.State == state })
}

func (l LonghornView) count(is func(datapath.Path) bool) (n int) {
	for _, v := range l.Volumes {
		if is(v) {
			n++
		}
	}
	return n
}

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
	// Problem is what must be repaired; empty if nothing must.
	Problem string `json:"problem,omitempty"`
	// Updated client pods, of the Total that there should be.
	Updated int `json:"updated"`
	Total   int `json:"total"`
}

// LostNode is a node whose NodeFence is not Healthy, or is Healthy and old, or has old mounts.
type LostNode struct {
	Node      string     `json:"node"`
	Phase     string     `json:"phase"`
	LostSince *time.Time `json:"lostSince,omitempty"`
	WaitsFor  string     `json:"waitsFor"`
	Next      string     `json:"next"`
	// OnlyIf is the precondition of Next.
	OnlyIf string `json:"onlyIf,omitempty"`
	// MayWrite: the node is Ready with old mounts of volumes that another node may have now.
	MayWrite bool `json:"mayWrite,omitempty"`
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

// NetworkName of a text that Attachment.String wrote.
func NetworkName(text string) string {
	a, err := multus.ParseAttachment(text)
	switch {
	case err != nil:
		return text
	case a.IsZero():
		return "cluster network"
	}
	return a.Network.String()
}

// NetworkOf names the network of a volume now.
func NetworkOf(p datapath.Path) string {
	if p.Network == nil {
		return "-"
	}
	return NetworkName(*p.Network)
}

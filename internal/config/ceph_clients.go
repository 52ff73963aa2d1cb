package config

import (
	"cmp"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CephClients is the cross-check of recorded addresses against Ceph's own list of clients, before a node is fenced.
type CephClients struct {
	// Mode: off, or crossCheck: before a node is fenced, Ceph is asked who has its volumes open. See
	// docs/fencing-setup.md#ask-ceph. Default off.
	Mode Switch `json:"mode,omitempty"`
	// ClusterID of the volumes that are checked. Default: the namespace of profile rook-ceph.
	ClusterID string `json:"clusterID,omitempty"`
	// URL of fairlead ceph-clients, whose host is in its certificate. Default: its Service in fairlead-system.
	URL string `json:"url,omitempty"`
}

// CrossCheck is a mode of CephClients, beside Off.
const CrossCheck Switch = "crossCheck"

func (c *CephClients) setDefaults(profiles []FencingProfile) {
	if or(&c.Mode, Off); c.Mode == Off {
		return
	}
	or(&c.URL, "https://fairlead-ceph-clients.fairlead-system.svc:9445")
	if i := slices.IndexFunc(profiles, func(p FencingProfile) bool { return p.Name == "rook-ceph" }); i >= 0 {
		c.ClusterID = cmp.Or(c.ClusterID, profiles[i].Namespace)
	}
}

func (c CephClients) validate(p *problems, path *field.Path) {
	oneOf(p, path.Child("mode"), c.Mode, Off, CrossCheck)
	u, err := url.Parse(c.URL)
	p.unless(c.Mode == Off || err == nil && u.Scheme == "https" && u.Host != "", field.Invalid(path.Child("url"), c.URL, "must be https:// and a host"))
}

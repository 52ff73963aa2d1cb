package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Messages of csi-addons on success (api/csiaddons/v1alpha1, FenceOperationSuccessfulMessage and
// UnFenceOperationSuccessfulMessage). There is no observed generation, and one text contains the other: only the whole
// text shows which operation was done.
const (
	resultSucceeded = "Succeeded"
	resultFailed    = "Failed"
	fencedMessage   = "fencing operation successful"
	unfencedMessage = "unfencing operation successful"
)

// Labels of Fairlead's NetworkFences.
const (
	NodeLabel     = "fairlead.io/node"
	IncidentLabel = "fairlead.io/incident"
	// BootLabel is the node's boot at creation. An orphaned fence of the present boot is only unfenced if its incident has ended.
	BootLabel = "fairlead.io/boot"
)

// Blocks reports whether the fence is requested and confirmed.
func (n NetworkFence) Blocks() bool {
	return !n.Unfenced && !n.Deleting && n.Result == resultSucceeded && n.Message == fencedMessage
}

// Unblocks reports whether unfencing is confirmed.
func (n NetworkFence) Unblocks() bool {
	return n.Unfenced && n.Result == resultSucceeded && n.Message == unfencedMessage
}

// failed reports whether the driver has refused.
func (n NetworkFence) failed() bool { return n.Result == resultFailed }

// incidentOf names one loss of one node: the machine, its boot and the time.
func incidentOf(node string, s v1alpha1.NodeFenceStatus) string {
	since := ""
	if s.LostSince != nil {
		since = s.LostSince.UTC().Format("20060102T150405")
	}
	return short(node, string(s.Node.UID), s.Node.BootID, since)
}

// fenceName differs for each incident and identity, so that a leftover can't pass for the fence.
func fenceName(node, incident, driver, clusterID string) string {
	return "fairlead-" + shortened(node) + "-" + incident + "-" + short(driver, clusterID)
}

// shortened leaves room for a suffix in the name of an object.
func shortened(node string) string {
	const room = 200 // of 253 for an object's name
	if len(node) > room {
		node = strings.TrimRight(node[:room], "-.")
	}
	return node
}

func short(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:5])
}

// object is the NetworkFence of a recorded fence: with a class, or else with driver, secret and parameters, as the
// proposal has it.
func object(node, boot string, f v1alpha1.Fence, unfenced bool) NetworkFence {
	n := NetworkFence{
		Name: f.Name, CIDRs: f.CIDRs, Unfenced: unfenced,
		Labels: map[string]string{NodeLabel: LabelValue(node), IncidentLabel: f.Incident, BootLabel: LabelValue(boot)},
	}
	if f.Class != "" {
		n.Class = f.Class
		return n
	}
	n.Driver, n.Secret = f.Driver, f.Secret
	if f.ClusterID != "" {
		n.Parameters = map[string]string{"clusterID": f.ClusterID}
	}
	return n
}

// LabelValue is a node's name or boot ID, or its hash where it is not a valid label value.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) > 0 {
		return short(name)
	}
	return name
}

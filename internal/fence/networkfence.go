package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What csi-addons says of success (api/csiaddons/v1alpha1, constants
// FenceOperationSuccessfulMessage and UnFenceOperationSuccessfulMessage). There is
// no observed generation, and the one text is a part of the other: only the whole
// text tells which of the two was done.
const (
	resultSucceeded = "Succeeded"
	resultFailed    = "Failed"
	fencedMessage   = "fencing operation successful"
	unfencedMessage = "unfencing operation successful"
)

// Labels of the NetworkFences that Fairlead makes.
const (
	NodeLabel     = "fairlead.io/node"
	IncidentLabel = "fairlead.io/incident"
	// BootLabel is the boot of the node in which it was made: while that runs, it is taken back only for an incident that is over.
	BootLabel = "fairlead.io/boot"
)

// Blocks tells whether the fence is confirmed: asked for, and done.
func (n NetworkFence) Blocks() bool {
	return !n.Unfenced && !n.Deleting && n.Result == resultSucceeded && n.Message == fencedMessage
}

// LetIn tells whether taking it back is confirmed.
func (n NetworkFence) LetIn() bool {
	return n.Unfenced && n.Result == resultSucceeded && n.Message == unfencedMessage
}

// failed tells whether the driver has said no.
func (n NetworkFence) failed() bool { return n.Result == resultFailed }

// asked tells whether the object asks for what the record says: cidrs can be
// changed by anybody who may write it, and so can the state.
func (n NetworkFence) asked(f v1alpha1.Fence) bool {
	return !n.Unfenced && slices.Equal(n.CIDRs, f.CIDRs)
}

// incidentOf names one loss of one node: the machine, its boot and the time.
func incidentOf(node string, s v1alpha1.NodeFenceStatus) string {
	since := ""
	if s.LostSince != nil {
		since = s.LostSince.UTC().Format("20060102T150405")
	}
	return short(node, string(s.Node.UID), s.Node.BootID, since)
}

// fenceName is unlike that of any other incident or identity, so that what is
// left over from another one can't be taken for it.
func fenceName(node, incident, driver, clusterID string) string {
	return "fairlead-" + shortened(node) + "-" + incident + "-" + short(driver, clusterID)
}

// shortened is a node's name with room for more in the name of an object.
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

// object is the NetworkFence of a recorded fence: with a class if there is one,
// else with driver, secret and parameters, as the proposal has it.
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

// LabelValue is a node's name or boot, or a hash of one that is none for a label: it
// may be too long, and a boot is whatever the kubelet says.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) > 0 {
		return short(name)
	}
	return name
}

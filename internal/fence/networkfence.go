package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
	NodeLabel = "fairlead.io/node"
	// MachineLabel is the system UUID of the machine that is fenced, BootLabel its boot, and RecordLabel the UID of the NodeFence that the request was recorded in.
	MachineLabel = "fairlead.io/machine"
	BootLabel    = "fairlead.io/boot"
	RecordLabel  = "fairlead.io/record"
)

// Blocks reports whether the fence is requested and confirmed.
func (n NetworkFence) Blocks() bool {
	return !n.Unfenced && !n.Deleting && n.Result == resultSucceeded && n.Message == fencedMessage
}

// Unblocks reports whether unfencing is confirmed.
func (n NetworkFence) Unblocks() bool {
	return n.Unfenced && n.Result == resultSucceeded && n.Message == unfencedMessage
}

// ended reports whether the driver says that its command has failed, and nothing of it runs any more: by a code of gRPC that is no
// time-out, and without a word of one.
func (n NetworkFence) ended() bool {
	for _, late := range []string{"deadline", "timed out", "timeout", "canceled", "context"} {
		if strings.Contains(strings.ToLower(n.Message), late) {
			return false
		}
	}
	for _, code := range []string{"Internal", "InvalidArgument", "NotFound", "FailedPrecondition", "PermissionDenied", "Unauthenticated", "Unimplemented"} {
		if strings.Contains(n.Message, "code = "+code+" ") {
			return true
		}
	}
	return false
}

// failed reports whether the driver has refused.
func (n NetworkFence) failed() bool { return n.Result == resultFailed }

// fenceName differs for each request of a boot, so that a leftover can't pass for the fence.
func fenceName(node string, boot v1alpha1.Boot, number int64, k key) string {
	return "fairlead-" + shortened(node) + "-" + short(boot.SystemUUID, boot.BootID, strconv.FormatInt(number, 10)) + "-" + short(k.driver, k.clusterID)
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

// newObject is the NetworkFence of a recorded fence: with a class, or else with driver, secret and parameters, as the
// proposal has it.
func (f Facts) newObject(r v1alpha1.Fence, unfenced bool) NetworkFence {
	n := NetworkFence{
		Name: r.Name, CIDRs: r.CIDRs, Unfenced: unfenced,
		Labels: map[string]string{
			NodeLabel: LabelValue(f.Node.Name), MachineLabel: LabelValue(f.Spec.Boot.SystemUUID), BootLabel: LabelValue(f.Spec.Boot.BootID), RecordLabel: LabelValue(f.RecordUID),
		},
	}
	if r.Class != "" {
		n.Class = r.Class
		return n
	}
	n.Driver, n.Secret = r.Driver, r.Secret
	if r.ClusterID != "" {
		n.Parameters = map[string]string{"clusterID": r.ClusterID}
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

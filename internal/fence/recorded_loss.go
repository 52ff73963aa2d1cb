package fence

import (
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// RecordedLossAnnotation on a Node has the boot ID and Ready time of one loss, then the PersistentVolumes that the node
// holds. While Fairlead is down, the API server holds these volumes only, not all of the driver. The mark counts while
// the node has this boot and this condition.
const RecordedLossAnnotation = "fairlead.io/recorded-loss"

// RecordedLoss is the mark for a Node; "" is none. Only a silent node (Ready is Unknown) mounts nothing more: a kubelet
// reports a volume in the Node's status before it mounts it, which ends Unknown (Kubernetes v1.37.2,
// pkg/kubelet/volumemanager/reconciler: reportedInUse).
func RecordedLoss(n Node, s v1alpha1.NodeFenceSpec) string {
	if !isOf(s, n) || n.Ready || !n.Unknown || s.LostSince == nil {
		return ""
	}
	mark := []string{n.Boot.BootID + "@" + n.ReadyChanged.UTC().Format(time.RFC3339)}
	for _, v := range s.Volumes {
		if !v.Released && !refused(s, Volume{Driver: v.Driver, ClusterID: v.ClusterID}) {
			mark = append(mark, NamesOf(v)...)
		}
	}
	return strings.Join(mark, " ")
}

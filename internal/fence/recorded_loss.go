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
func RecordedLoss(n Node, s v1alpha1.NodeFenceStatus) string {
	boot := n.Machine.BootID
	lost := s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing
	if !lost && !isFencing(s.Phase) || !n.Exists || !n.Unknown || boot == "" || boot != s.Node.BootID {
		return ""
	}
	mark := []string{boot + "@" + n.ReadyChanged.UTC().Format(time.RFC3339)}
	if lost { // else the storage refuses the node
		mark = append(mark, VolumeNames(s.Volumes)...)
	}
	return strings.Join(mark, " ")
}

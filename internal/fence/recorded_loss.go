package fence

import (
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// RecordedLossAnnotation on a Node names one loss of it, boot ID and time of the Ready condition, and then the PersistentVolumes that
// the node holds by its NodeFence, each after a blank. While Fairlead is down, the API server then goes by these names, and
// does not hold every volume of the driver. It counts only as long as the node has this boot and this condition: the
// mark of a loss that is over says nothing.
const RecordedLossAnnotation = "fairlead.io/recorded-loss"

// RecordedLoss is what a Node is to be marked with; "" is nothing. Only a silent node (Ready is Unknown)
// mounts nothing more: its kubelet says in the Node's status what it is going to mount, before it does
// (Kubernetes v1.36.3, pkg/kubelet/volumemanager/reconciler: reportedInUse), and then Ready is not Unknown any more.
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

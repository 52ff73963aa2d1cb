package fence

import (
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// RecordedLossAnnotation on a Node names one loss of it: boot ID and time of the Ready condition. It says that all volumes
// that the node had then are in its NodeFence. While Fairlead is down, the API server then goes by that record, and
// does not hold every volume of the driver. It counts only as long as the node has this boot and this condition: the
// mark of a loss that is over says nothing.
const RecordedLossAnnotation = "fairlead.io/recorded-loss"

// RecordedLoss is what a Node is to be marked with; "" is nothing. Only a node that nobody hears of (Ready is Unknown)
// mounts nothing more: its kubelet says in the Node's status what it is going to mount, before it does
// (Kubernetes v1.36.3, pkg/kubelet/volumemanager/reconciler: reportedInUse), and then Ready is not Unknown any more.
func RecordedLoss(n Node, s v1alpha1.NodeFenceStatus) string {
	boot := n.Machine.BootID
	recorded := s.Phase == v1alpha1.NodeLost || isFencing(s.Phase)
	if !recorded || !n.Exists || !n.Unknown || boot == "" || boot != s.Node.BootID {
		return ""
	}
	return boot + "@" + n.ReadyChanged.UTC().Format(time.RFC3339)
}

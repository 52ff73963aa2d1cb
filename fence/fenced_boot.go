package fence

import (
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// FencedBootAnnotation on a Node says that one boot of it is fenced: the one whose ID
// it has. While Fairlead is down the API server holds no attachment for the sake of
// such a node. One that names another boot than the node's status counts for nothing,
// and so does one without the out-of-service taint: the node may be in use again.
const FencedBootAnnotation = "fairlead.io/fenced-boot"

// FencedBoot is the boot that may be called fenced as a whole; "" is none. The
// storage must refuse all that the node had, by confirmed fences of this incident, also
// what is switched off by now.
func FencedBoot(n Node, s v1alpha1.NodeFenceStatus) string {
	if !n.OutOfService || n.Machine.BootID != s.Node.BootID || s.Phase != v1alpha1.NodeFenced && s.Phase != v1alpha1.NodeDrained {
		return ""
	}
	var stand []key
	for _, f := range s.Fences {
		if f.Incident != s.Incident {
			continue
		}
		if f.State != v1alpha1.FenceFenced {
			return ""
		}
		stand = append(stand, keyOfFence(f))
	}
	if len(stand) == 0 || slices.ContainsFunc(keys(s.Volumes), func(k key) bool { return !slices.Contains(stand, k) }) {
		return ""
	}
	return n.Machine.BootID
}

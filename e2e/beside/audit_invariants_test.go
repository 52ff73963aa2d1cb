package beside

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// restartsInUse returns the deletions, by whoever, of pods that an attached volume needed:
// instance managers, and CSI plugin pods on the node where an RWX volume is attached. It
// follows from the record alone what was attached when.
func restartsInUse(writes []sandbox.Write, node string) []string {
	var found []string
	attached, shared, nodes := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, w := range writes {
		if w.Code >= 300 {
			continue
		}
		var o struct {
			Spec   struct{ AccessMode, NodeName string }
			Status struct{ State string }
		}
		_ = json.Unmarshal(w.Response, &o) // some writes have no such answer
		switch resource, _, _ := strings.Cut(w.Resource, "/"); {
		case resource == "volumes" && w.Verb == "delete":
			delete(attached, w.Name)
		case resource == "volumes" && o.Status.State != "":
			attached[w.Name], shared[w.Name] = o.Status.State == "attached", o.Spec.AccessMode == "rwx"
		case resource == "pods" && w.Verb != "delete" && o.Spec.NodeName != "":
			nodes[w.Name] = o.Spec.NodeName
		case resource == "pods" && w.Verb == "delete" && w.Writer() != "kwok":
			for volume, is := range attached {
				manager := strings.HasPrefix(w.Name, "instance-manager-")
				plugin := strings.HasPrefix(w.Name, "longhorn-csi-plugin-") && shared[volume] && nodes[w.Name] == node
				if is && (manager || plugin) {
					found = append(found, fmt.Sprintf("%s, while %s was attached", w, volume))
				}
			}
		}
	}
	return found
}

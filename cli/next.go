package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// Next is the command that comes next for a blocker: to stop the workloads of a volume if they have an owner that can be
// scaled, otherwise a command that shows more. The namespace is the storage system's.
func Next(b v1.Blocker, namespace string) string {
	names := slices.Concat([]string{b.Name, namespace}, b.Nodes, b.Workloads, b.Owners)
	if slices.ContainsFunc(names, func(name string) bool { return name != "" && !typeable.MatchString(name) }) {
		return "-"
	}
	return cmp.Or(nextCommand(b, namespace), "-")
}

// typeable is a name that is neither a flag nor anything else to a shell: names come from objects of others.
var typeable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func nextCommand(b v1.Blocker, namespace string) string {
	here := "kubectl -n " + namespace + " "
	if command := catalog.ScaleDown(b.Owners); command != "" {
		return command
	}
	switch catalog.BlockerKind(b.Kind) {
	case catalog.BlockedByVolume:
		for _, w := range b.Workloads {
			if in, pod, ok := strings.Cut(w, "/"); ok {
				return "kubectl -n " + in + " describe pod " + pod
			}
		}
		return here + "describe volumes." + longhorn.GroupVersion.Group + " " + b.Name
	case catalog.BlockedByServer:
		return here + "describe pod " + b.Name
	case catalog.BlockedByService:
		return here + "describe service " + b.Name
	case catalog.BlockedByDaemonSet:
		return here + "describe daemonset " + b.Name
	case catalog.BlockedByTime:
		if b.Name == catalog.TimeOfSettle { // some seconds
			return ""
		}
		return "kubectl -n " + registration.Namespace + " get configmap " + ConfigurationMap + " -o yaml"
	case catalog.BlockedByNetwork:
		return "kubectl get network-attachment-definitions -A"
	case catalog.BlockedByRequest:
		return "kubectl describe persistentvolume " + b.Name
	case catalog.BlockedByNode:
		if len(b.Nodes) == 1 {
			return "kubectl describe node " + b.Nodes[0]
		}
		return "kubectl describe nodes"
	case catalog.BlockedByClass:
		return "kubectl get priorityclasses"
	case catalog.BlockedByClient, catalog.BlockedByComponent, catalog.BlockedByOther:
		// A pod, a Deployment or a DaemonSet.
		return here + "get events --field-selector involvedObject.name=" + b.Name
	}
	return ""
}

package catalog

import (
	"slices"
	"strings"
)

// scalable are the kinds that `kubectl scale` stops.
var scalable = []string{"deployment", "replicaset", "statefulset", "replicationcontroller"}

// ScaleDown is the command that stops the owners of a volume's workloads; "" unless all of them can be scaled, since the
// volume stays attached until the last workload stops. They are in one namespace, as the volume's claim is.
func ScaleDown(owners []string) string {
	command := ""
	for _, owner := range owners {
		namespace, name, _ := strings.Cut(owner, "/")
		if kind, _, _ := strings.Cut(name, "/"); !slices.Contains(scalable, kind) {
			return ""
		}
		if command == "" {
			command = "kubectl -n " + namespace + " scale --replicas=0"
		}
		command += " " + name
	}
	return command
}

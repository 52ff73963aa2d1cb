package catalog

import (
	"slices"
	"strings"
)

// scalable are the kinds that `kubectl scale` stops.
var scalable = []string{"deployment", "replicaset", "statefulset", "replicationcontroller"}

// ScaleDown is the command that stops the owners of a volume's workloads. They are in one namespace, as the
// volume's claim is. "" if none can be scaled.
func ScaleDown(owners []string) string {
	command := ""
	for _, owner := range owners {
		namespace, name, _ := strings.Cut(owner, "/")
		if kind, _, _ := strings.Cut(name, "/"); !slices.Contains(scalable, kind) {
			continue
		}
		if command == "" {
			command = "kubectl -n " + namespace + " scale --replicas=0"
		}
		command += " " + name
	}
	return command
}

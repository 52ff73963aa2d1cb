package definition

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// checkName reports a name that the Services of the exposure cannot have. Their
// names are DNS-1035 labels (v1 Service, metadata.name), and slots append their index.
func checkName(name string, exposure nfs.Exposure) nfs.Problems {
	var problems nfs.Problems
	longest := ""
	for _, service := range publish.Names(name, exposure, 1) {
		longest = service
	}
	if name == "" || longest == "" {
		return problems
	}
	if exposure == nfs.PerNodeStable {
		longest = fmt.Sprintf("%s-slot-%d", name, nfs.MaxSlots-1)
	}
	if messages := validation.IsDNS1035Label(longest); len(messages) > 0 {
		problems.Add("metadata.name", "exposure %s needs Services such as %q, which is no name of a Service: %s; choose another name for the NFSService", exposure, longest, strings.Join(messages, "; "))
	}
	return problems
}

// checkServerService reports a Service of server pods of a name that the NFSService publishes itself.
func (out *Service) checkServerService(name string) (problems nfs.Problems) {
	for _, published := range publish.Names(name, out.Exposure, nfs.MaxSlots) {
		if published == out.ServerService {
			problems.Add("spec.serverService.name", "%q is the name of a Service that this NFSService publishes with exposure %s, and can't be that of its servers: give the NFSService another name", published, out.Exposure)
		}
	}
	return problems
}

// checkMountOptions reports options that are malformed or unknown, and a port
// that is not the service's.
func (out *Service) checkMountOptions() nfs.Problems {
	const path = "spec.mountOptions"
	parsed, problems := options.Parse(path, out.MountOptions)
	problems = append(problems, parsed.CheckKnown(path)...)
	if version := int32(parsed.Version()); version != 0 && !slices.Contains(out.Versions, version) {
		problems.Add(path, "version %d is not among spec.versions (%v), so nothing tells whether the servers answer to it: write it there, or remove the option", version, out.Versions)
	}
	if out.Exposure != nfs.PerNode { // where each backend may have a port of its own
		_, found := parsed.ForServer(path, out.Port)
		problems = append(problems, found...)
	}
	return problems
}

package mutators

import (
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFSDefaults are the defaults of an NFSService for its PersistentVolumes.
type NFSDefaults struct {
	// Service is namespace/name; Exists is false if there is no such NFSService.
	Service string
	Exists  bool
	// MountOptions and Versions of its spec.
	MountOptions []string
	Versions     []int32
}

// DefaultNFSVolume gives a PersistentVolume without mount options those of its NFSService, and a PersistentVolume without
// an NFS version the service's, if the service names one version only. The volume's own options stay. Malformed options
// of a service are not passed on.
//
// Objects: new PersistentVolumes of Fairlead's NFS drivers.
// Source: NFSServiceSpec.MountOptions and Versions.
func DefaultNFSVolume(p volume.View, defaults NFSDefaults) Result {
	if !defaults.Exists {
		return unchanged(ReasonNoNFSService, defaults.Service)
	}
	own, inAttribute := p.Spec.MountOptions, attributeOptions(p.Attributes())
	want := own
	if len(own) == 0 && inAttribute == "" {
		want = defaults.MountOptions
	}
	if len(defaults.Versions) == 1 {
		// The merge must not add an option that the attribute decides.
		version := options.Merge([]string{fmt.Sprintf("vers=%d", defaults.Versions[0])}, append(slices.Clone(want), elements(inAttribute)...))
		want = slices.Concat(want, version[len(want)+len(elements(inAttribute)):])
	}
	if len(want) == len(own) {
		return unchanged(ReasonUpToDate, "")
	}
	if parsed, problems := options.Parse("spec.mountOptions", want); len(problems) > 0 || len(parsed.CheckKnown("")) > 0 {
		if len(own) > 0 {
			return unchanged(ReasonMalformed, "") // the validator reports the volume's own options
		}
		return skipped(ReasonMalformed, fmt.Sprintf("the mount options of NFSService %s: correct spec.mountOptions of the NFSService, or set the volume's own mount options", defaults.Service))
	}
	return mutated(ReasonMountOptions, strings.Join(want, ","), jsonpatch.NewOperation("add", "/spec/mountOptions", want))
}

func elements(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// attributeOptions are the mount options in the volume's attributes. Names match in any case, as in the GKE driver.
func attributeOptions(attributes map[string]string) string {
	for name, value := range attributes {
		if strings.EqualFold(name, volume.MountOptionsAttribute) {
			return value
		}
	}
	return ""
}

package mutators

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

func nfsVolume(attribute string, mountOptions ...string) volume.View {
	var v volume.View
	v.Spec.MountOptions = mountOptions
	if attribute != "" {
		v.Spec.CSI.VolumeAttributes = map[string]string{"mountoptions": attribute}
	}
	return v
}

func TestDefaultsOfNFSVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		volume   volume.View
		options  []string
		versions []int32
		want     string // of the patch; "" is none
		outcome  Outcome
	}{
		"none of its own":              {nfsVolume(""), []string{"hard", "nconnect=4"}, nil, "hard,nconnect=4", Mutated},
		"none, and one version":        {nfsVolume(""), []string{"hard"}, []int32{3}, "hard,vers=3", Mutated},
		"the service names a version":  {nfsVolume(""), []string{"nfsvers=4.1"}, []int32{4}, "nfsvers=4.1", Mutated},
		"two versions are a choice":    {nfsVolume(""), nil, []int32{3, 4}, "", Unchanged},
		"its own options":              {nfsVolume("", "soft"), []string{"hard"}, nil, "", Unchanged},
		"its own without a version":    {nfsVolume("", "soft"), []string{"hard"}, []int32{4}, "soft,vers=4", Mutated},
		"its own version":              {nfsVolume("", "soft,v3"), []string{"hard"}, []int32{4}, "", Unchanged},
		"options in an attribute":      {nfsVolume("soft"), []string{"hard"}, nil, "", Unchanged},
		"a version in an attribute":    {nfsVolume("vers=4.2"), []string{"hard"}, []int32{3}, "", Unchanged},
		"an attribute without version": {nfsVolume("soft"), []string{"hard"}, []int32{3}, "vers=3", Mutated},
		"the service gives nothing":    {nfsVolume(""), nil, nil, "", Unchanged},
		"the service's are malformed":  {nfsVolume(""), []string{"nconnect=99"}, nil, "", Skipped},
		"the service's are unknown":    {nfsVolume(""), []string{"nconect=9"}, nil, "", Skipped},
		"its own are malformed":        {nfsVolume("", "nconnect=99"), nil, []int32{3}, "", Unchanged},
	} {
		defaults := NFSDefaults{Service: "storage/files", Exists: true, MountOptions: test.options, Versions: test.versions}
		result := DefaultNFSVolume(test.volume, defaults)
		got := ""
		if len(result.Patch) > 0 {
			got = strings.Join(result.Patch[0].Value.([]string), ",")
		}
		if result.Outcome != test.outcome || got != test.want {
			t.Errorf("%s: got %s %q, want %s %q", name, result.Outcome, got, test.outcome, test.want)
		}
		if result.Outcome != Mutated {
			continue
		}
		after := test.volume
		after.Spec.MountOptions = result.Patch[0].Value.([]string)
		if _, problems := options.Parse("", slices.Clone(after.Spec.MountOptions)); len(problems) > 0 {
			t.Errorf("%s: made invalid: %v", name, problems)
		}
		if again := DefaultNFSVolume(after, defaults); again.Outcome != Unchanged {
			t.Errorf("%s: applied twice: %+v", name, again)
		}
	}
	if result := DefaultNFSVolume(nfsVolume(""), NFSDefaults{MountOptions: []string{"hard"}}); result.Outcome != Unchanged {
		t.Errorf("no such service: %+v", result)
	}
}

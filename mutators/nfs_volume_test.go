package mutators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
		want     string // mount options of the patch
		outcome  Outcome
	}{
		"no options":                   {nfsVolume(""), []string{"hard", "nconnect=4"}, nil, "hard,nconnect=4", Mutated},
		"no options, one version":      {nfsVolume(""), []string{"hard"}, []int32{3}, "hard,vers=3", Mutated},
		"the service names a version":  {nfsVolume(""), []string{"nfsvers=4.1"}, []int32{4}, "nfsvers=4.1", Mutated},
		"two versions":                 {nfsVolume(""), nil, []int32{3, 4}, "", Unchanged},
		"own options":                  {nfsVolume("", "soft"), []string{"hard"}, nil, "", Unchanged},
		"own options without version":  {nfsVolume("", "soft"), []string{"hard"}, []int32{4}, "soft,vers=4", Mutated},
		"own version":                  {nfsVolume("", "soft,v3"), []string{"hard"}, []int32{4}, "", Unchanged},
		"options in an attribute":      {nfsVolume("soft"), []string{"hard"}, nil, "", Unchanged},
		"a version in an attribute":    {nfsVolume("vers=4.2"), []string{"hard"}, []int32{3}, "", Unchanged},
		"an attribute without version": {nfsVolume("soft"), []string{"hard"}, []int32{3}, "vers=3", Mutated},
		"no defaults":                  {nfsVolume(""), nil, nil, "", Unchanged},
		"defaults malformed":           {nfsVolume(""), []string{"read_ahead_kb=x"}, nil, "", Skipped},
		"defaults unknown":             {nfsVolume(""), []string{"nconect=9"}, nil, "", Skipped},
		"own options malformed":        {nfsVolume("", "read_ahead_kb=x"), nil, []int32{3}, "", Unchanged},
	} {
		defaults := NFSDefaults{Service: "storage/files", Exists: true, MountOptions: test.options, Versions: test.versions}
		result := DefaultNFSVolume(test.volume, defaults)
		got := ""
		if len(result.Patch) > 0 {
			got = strings.Join(result.Patch[0].Value.([]string), ",")
		}
		must.Check(t, result.Outcome == test.outcome && got == test.want, "%s: got %s %q, want %s %q", name, result.Outcome, got, test.outcome, test.want)
		if result.Outcome != Mutated {
			continue
		}
		after := test.volume
		after.Spec.MountOptions = result.Patch[0].Value.([]string)
		_, problems := options.Parse("", after.Spec.MountOptions)
		must.Check(t, len(problems) == 0, "%s: made invalid: %v", name, problems)
		again := DefaultNFSVolume(after, defaults)
		must.Check(t, again.Outcome == Unchanged, "%s: applied twice: %+v", name, again)
	}
	must.Equal(t, DefaultNFSVolume(nfsVolume(""), NFSDefaults{MountOptions: []string{"hard"}}).Outcome, Unchanged, "no such service")
}

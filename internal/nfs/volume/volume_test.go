package volume

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const attributesPath, mountPath = "spec.csi.volumeAttributes", "spec.mountOptions"

func TestGKEDriversVolumesAreReadUnchanged(t *testing.T) {
	v, problems := Read(attributesPath, map[string]string{
		"Share": "/gpfs/fs1", "subDir": "${pvc.metadata.namespace}/a", "MOUNTPERMISSIONS": "0775", "mountoptions": "hard,read_ahead_kb=4",
		"server": "10.0.0.1", "storage.kubernetes.io/csiProvisionerIdentity": "x", "csi.storage.k8s.io/pvc/namespace": "team",
	}, mountPath, []string{"vers=3", "nolock"})
	must.Do(t, problems.Err())
	if v.Share != "/gpfs/fs1" || v.SubDir != "team/a" || v.Permissions != 0o775 || v.Server != "10.0.0.1" ||
		strings.Join(v.Options.Mount, ",") != "vers=3,nolock,hard" || *v.Options.ReadAheadKB != 4 {
		t.Errorf("got %+v", v)
	}
}

func TestProblemsOfVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		attributes   map[string]string
		options      []string
		field, words string
	}{
		"no share":                {map[string]string{}, nil, attributesPath + "[share]", "empty"},
		"subdir leads upwards":    {map[string]string{"share": "/a", "subdir": "../b"}, nil, attributesPath + "[subdir]", "upwards"},
		"permissions not octal":   {map[string]string{"share": "/a", "mountPermissions": "0789"}, nil, attributesPath + "[mountPermissions]", "octal"},
		"permissions too large":   {map[string]string{"share": "/a", "mountPermissions": "17777"}, nil, attributesPath + "[mountPermissions]", "7777"},
		"read-ahead no number":    {map[string]string{"share": "/a"}, []string{"read_ahead_kb=x"}, mountPath + "[0]", "no number"},
		"options of the volume":   {map[string]string{"share": "/a", "mountOptions": "addr=1"}, nil, attributesPath + "[mountOptions][0]", "comes from the NFS service"},
		"options that contradict": {map[string]string{"share": "/a", "mountOptions": "soft"}, []string{"hard"}, attributesPath + "[mountOptions]", "contradicts"},
		"one share in two cases":  {map[string]string{"share": "/a", "Share": "/b"}, nil, attributesPath + "[share]", "another value"},
		"service in capitals":     {map[string]string{"share": "/a", "Service": "a/b"}, nil, attributesPath + "[Service]", "lower case"},
	} {
		_, problems := Read(attributesPath, c.attributes, mountPath, c.options)
		if len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Message, c.words) {
			t.Errorf("%s: got %v", name, problems)
		}
	}
}

func TestServiceOfVolumes(t *testing.T) {
	none, other := types.NamespacedName{}, types.NamespacedName{Namespace: "storage", Name: "default"}
	for _, c := range []struct {
		attributes map[string]string
		fallback   types.NamespacedName
		want       string
	}{
		{map[string]string{"service": "a/b"}, other, "a/b"},
		{nil, other, "storage/default"},
		{nil, none, ""},
		{map[string]string{"service": ""}, other, ""},
		{map[string]string{"service": "b"}, other, ""},
		{map[string]string{"service": "a/b/c"}, other, ""},
		{map[string]string{"service": "a/B"}, other, ""},
	} {
		got, err := Service(c.attributes, c.fallback)
		if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("%v: got %v, %v", c.attributes, got, err)
		}
	}
}

// A volume that is read without problems can be mounted.
func FuzzRead(f *testing.F) {
	f.Add("/a", "b/${pv.metadata.name}", "0775", "hard", "vers=3,read_ahead_kb=1")
	f.Add("/", "", "", "", "")
	f.Fuzz(func(t *testing.T, share, subDir, permissions, own, mount string) {
		attributes := map[string]string{"share": share, "subdir": subDir, "mountPermissions": permissions, "mountOptions": own, "csi.storage.k8s.io/pv/name": "pv"}
		v, problems := Read("a", attributes, "m", []string{mount})
		if len(problems) > 0 {
			return
		}
		if _, err := options.ParseShare(v.Share); err != nil || v.Permissions > MaxPermissions || strings.Contains(v.SubDir, "..") && strings.Contains("/"+v.SubDir+"/", "/../") {
			t.Errorf("got %+v, %v", v, err)
		}
		if _, again := options.Parse("m", v.Options.Mount); len(again) > 0 {
			t.Errorf("%q: %v", v.Options.Mount, again)
		}
	})
}

package watchers

import (
	"slices"
	"strings"
	"testing"
)

func TestRBDImageOf(t *testing.T) {
	for _, c := range []struct {
		handle     string
		attributes map[string]string
		want       string
	}{
		{"0001-0009-rook-ceph-1", map[string]string{"pool": "replicapool", "imageName": "csi-vol-1"},
			"status --format json --pool=replicapool --image=csi-vol-1"},
		{"h", map[string]string{"pool": ".mgr", "radosNamespace": "ns_1", "imageName": "csi-vol-1"},
			"status --format json --pool=.mgr --namespace=ns_1 --image=csi-vol-1"},
		{"disk.1", map[string]string{"pool": "p", "staticVolume": "true"}, "status --format json --pool=p --image=disk.1"},
		{"disk.1", map[string]string{"pool": "p", "staticVolume": "true", "imageName": "other"}, "status --format json --pool=p --image=disk.1"},
	} {
		image, err := RBDImageOf(c.handle, c.attributes)
		if err != nil {
			t.Fatal(err)
		}
		args, err := image.StatusArgs()
		if err != nil || strings.Join(args, " ") != c.want {
			t.Errorf("%v: %q, %v", c.attributes, args, err)
		}
	}
}

// odd are values that a command would take for something else.
var odd = []string{
	"", "-p", "--pool=x", "a/b", "a@b", "a b", " a", "a\n", "a\x00", "a\tb", "a;b", "a$b", "a'b", `a"b`, `a\b`, "a*", "ä", "\xff", ".", "..", "a:b", "a,b",
	strings.Repeat("a", maxName+1),
}

func TestRBDImageRefuses(t *testing.T) {
	for _, value := range odd {
		for name, attributes := range map[string]map[string]string{
			"pool":  {"pool": value, "imageName": "i"},
			"image": {"pool": "p", "imageName": value},
			"space": {"pool": "p", "imageName": "i", "radosNamespace": value},
		} {
			if name == "space" && value == "" {
				continue // the pool's own
			}
			if image, err := RBDImageOf("h", attributes); err == nil {
				t.Errorf("%s %q is taken: %v", name, value, image)
			}
		}
		if image, err := RBDImageOf(value, map[string]string{"pool": "p", "staticVolume": "true"}); err == nil {
			t.Errorf("handle %q is taken: %v", value, image)
		}
		if args, err := (RBDImage{Pool: "p", Image: value}).StatusArgs(); err == nil {
			t.Errorf("%q is asked for: %q", value, args)
		}
	}
}

func TestCephFSVolumeOf(t *testing.T) {
	for _, c := range []struct {
		attributes map[string]string
		want       CephFSVolume
	}{
		{map[string]string{"fsName": "myfs", "subvolumePath": "/volumes/csi/csi-vol-1/4f2e"}, CephFSVolume{"myfs", "/volumes/csi/csi-vol-1/4f2e"}},
		{map[string]string{"fsName": "myfs", "staticVolume": "true", "rootPath": "/data dir/", "subvolumePath": "/x"}, CephFSVolume{"myfs", "/data dir/"}},
		{map[string]string{"fsName": "myfs", "staticVolume": "true", "rootPath": "/"}, CephFSVolume{"myfs", "/"}},
	} {
		if got, err := CephFSVolumeOf(c.attributes); err != nil || got != c.want {
			t.Errorf("%v: %v, %v", c.attributes, got, err)
		}
	}
	for _, value := range odd {
		if volume, err := CephFSVolumeOf(map[string]string{"fsName": value, "subvolumePath": "/v"}); err == nil {
			t.Errorf("fsName %q is taken: %v", value, volume)
		}
	}
	for _, value := range []string{"", "-v", "v", "./v", "/a/../b", "/a//b", "/a/./b", "//a", "/a\n", "/a\x00", "/\xff", "/a\u202eb", "/" + strings.Repeat("a", maxPath)} {
		if volume, err := CephFSVolumeOf(map[string]string{"fsName": "f", "subvolumePath": value}); err == nil {
			t.Errorf("path %q is taken: %v", value, volume)
		}
	}
}

func TestFixedArgs(t *testing.T) {
	for want, args := range map[string][]string{
		"tell mds.* client ls --format json": AllClientsArgs(),
		"mds stat --format json":             MDSStatArgs(),
		"osd blocklist ls --format json":     BlocklistArgs(),
	} {
		if !slices.Equal(args, strings.Fields(want)) {
			t.Errorf("%q", args)
		}
	}
}

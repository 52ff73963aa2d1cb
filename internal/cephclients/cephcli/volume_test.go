package cephcli

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// odd are values that a command would take for something else.
var odd = []string{
	"-p", "--pool=x", "a/b", "a@b", "a b", " a", "a\n", "a\x00", "a\tb", "a;b", "a$b", "a'b", `a"b`, `a\b`, "a*", "*", "ä", "\xff", "a:b", "a,b",
	strings.Repeat("a", 256),
}

func TestOddNamesAreRefused(t *testing.T) {
	for _, value := range append(odd, "") {
		for what, v := range map[string]Volume{
			"pool":        {Pool: value, Image: "i"},
			"image":       {Pool: "p", Image: value},
			"namespace":   {Pool: "p", Image: "i", Namespace: value},
			"file system": {FileSystem: value, Path: "/v"},
		} {
			if what == "namespace" && value == "" {
				continue // the pool's own
			}
			must.Check(t, v.Validate() != nil && (Request{"v": v}).Validate() != nil, "%s %q is taken", what, value)
		}
	}
	for _, path := range []string{"", "-v", "v", "./v", "/a/../b", "/a//b", "/a/./b", "//a", "/" + strings.Repeat("a", 4096)} {
		must.Check(t, (Volume{FileSystem: "f", Path: path}).Validate() != nil, "path %q is taken", path)
	}
}

func TestCommandsOfVolumes(t *testing.T) {
	for want, v := range map[string]Volume{
		"status --format=json --pool=replicapool --image=csi-vol-1":             {Pool: "replicapool", Image: "csi-vol-1"},
		"status --format=json --pool=.mgr --image=csi-vol-1 --namespace=ns_1":   {Pool: ".mgr", Image: "csi-vol-1", Namespace: "ns_1"},
		"status --format=json --pool=p --image=0001-0009-rook-ceph-0000+_.disk": {Pool: "p", Image: "0001-0009-rook-ceph-0000+_.disk"},
	} {
		if got := strings.Join(v.StatusArgs(), " "); got != want || v.Validate() != nil {
			t.Errorf("%q, %v, want %q", got, v.Validate(), want)
		}
	}
	must.Equal(t, strings.Join(ClientLsArgs("my-fs", 1), " "), "tell mds.my-fs:1 client ls --format=json")
	for _, path := range []string{"/", "/volumes/csi/csi-vol-1/4f2e", "/data dir/"} {
		must.Do(t, (Volume{FileSystem: "f", Path: path}).Validate())
	}
}

func TestRequestIsBounded(t *testing.T) {
	r := Request{}
	for i := range MaxVolumes + 1 {
		must.Do(t, r.Validate())
		r[strconv.Itoa(i)] = Volume{Pool: "p", Image: "i"}
	}
	must.Check(t, r.Validate() != nil, "%d volumes are taken", len(r))
}

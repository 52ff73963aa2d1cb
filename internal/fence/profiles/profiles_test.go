package profiles

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDriversOfRookCeph(t *testing.T) {
	for driver, want := range map[string]string{
		"rook-ceph.rbd.csi.ceph.com":    "rbd.csi.ceph.com",
		"my-ns.cephfs.csi.ceph.com":     "cephfs.csi.ceph.com",
		"rbd.csi.ceph.com":              "rbd.csi.ceph.com",
		"nfs.csi.ceph.com":              "",
		"not-rbd.csi.ceph.com":          "",
		"rook-ceph.rbd.csi.ceph.com.eu": "",
		"ebs.csi.aws.com":               "",
		"":                              "",
	} {
		if got := RookCeph().suffix(driver); got != want || RookCeph().Serves(driver) != (want != "") {
			t.Errorf("%q: got %q", driver, got)
		}
	}
	pods := RookCeph().ClientPods("rook-ceph.rbd.csi.ceph.com")
	must.Check(t, len(pods) == 2 && pods[0]["app"] == "csi-rbdplugin" && pods[1]["app"] == "rook-ceph.rbd.csi.ceph.com-nodeplugin", "got %v", pods)
	if again := RookCeph().ClientPods("rook-ceph.cephfs.csi.ceph.com"); again[0]["app"] != "csi-cephfsplugin" {
		t.Errorf("got %v", again)
	}
}

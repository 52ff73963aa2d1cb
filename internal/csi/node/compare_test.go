package node

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// Linux 6.1 shows these options of a mount with vers=4.1,nconnect=4 and of one with vers=3,soft,nolock.
const (
	shown4 = "rw,relatime rw,vers=4.1,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,nconnect=4,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.5,local_lock=none,addr=10.0.0.1"
	shown3 = "ro,nosuid,noexec,relatime ro,vers=3,rsize=1048576,wsize=1048576,namlen=255,acregmin=1,soft,nolock,proto=tcp6,timeo=100,retrans=3,sec=krb5,mountaddr=fd00::1,mountvers=3,mountport=2049,mountproto=tcp6,local_lock=all,addr=fd00::1"
)

func TestDifferenceComparesWhatTheKernelShows(t *testing.T) {
	for _, c := range []struct{ shown, want, differs string }{
		{shown4, "", ""},
		{shown4, "vers=4.1,hard,tcp,sec=sys", ""},
		{shown4, "vers=4", ""},
		{shown4, "v4.1", ""},
		{shown4, "nfsvers=4,minorversion=1", ""},
		{shown4, "nfsvers=4,minorversion=2", "vers=4.1, not vers=4.2"},
		{shown4, "vers=3", "vers=4.1, not vers=3"},
		{shown4, "nfsvers=4.2", "vers=4.1, not vers=4.2"},
		{shown4, "softerr", "hard, not softerr"},
		{shown4, "proto=rdma", "proto=tcp, not proto=rdma"},
		{shown4, "noexec", "exec, not noexec"},
		{shown4, "sec=krb5p", "sec=sys, not sec=krb5p"},
		{strings.Replace(shown4, "sec=sys", "sec=null", 1), "sec=none", ""},
		// Negotiated, or those of an earlier mount that shares the superblock.
		{shown4, "rsize=1048576,nconnect=16,timeo=50,retrans=9,nolock,local_lock=all,acregmin=7,noatime", ""},
		{shown3, "ro,v3,soft,proto=tcp,nosuid,noexec,sec=krb5", ""},
		{shown3, "ro,acregmin=2", "acregmin=1, not acregmin=2"},
		{shown3, "ro,exec", "noexec, not exec"},
		{shown3, "", "read-only is true, not false"},
		{shown4, "ro", "read-only is false, not true"},
		{"rw,nosuid,nodev rw,user_id=0,group_id=0,default_permissions,allow_other", "vers=3,hard,nolock", ""}, // a helper in user space
	} {
		mount, super, _ := strings.Cut(c.shown, " ")
		have := mounts.Mount{Source: "s", Options: strings.Split(mount, ","), SuperOptions: strings.Split(super, ",")}
		want := &request{source: "s", options: strings.Split(c.want, ",")}
		want.readOnly = want.options[0] == "ro"
		got := difference(have, want)
		if got == "" != (c.differs == "") || !strings.Contains(got, c.differs) {
			t.Errorf("%s: %q, want %q", c.want, got, c.differs)
		}
	}
}

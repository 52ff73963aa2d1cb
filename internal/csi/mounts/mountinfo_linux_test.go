package mounts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const example = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:50 / /k/pods/a/mount rw,relatime shared:9 - nfs4 10.0.0.1:/exports/a\040b rw,vers=4.1,hard,addr=10.0.0.1
41 22 0:51 / /k/pods/b\040c/mount ro,nosuid - nfs [fd00::1]:/exports ro,vers=3,context="a,b"
42 22 0:52 / /k/pods/d/mount//deleted rw - fuse.nfs 10.0.0.1:/x rw,user_id=0
43 40 0:53 / /k/pods/a/mount rw - nfs 10.0.0.2:/top rw
`

func hostWith(t *testing.T, text string) *Host {
	path := filepath.Join(t.TempDir(), "mountinfo")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return &Host{MountInfo: path, BDI: t.TempDir()}
}

func TestMountInfoShowsSourceAndDevice(t *testing.T) {
	h := hostWith(t, example)
	for target, want := range map[string]string{
		"/k/pods/a/mount":   "10.0.0.2:/top nfs 0:53 rw rw",
		"/k/pods/b c/mount": `[fd00::1]:/exports nfs 0:51 ro,nosuid ro vers=3 context="a,b"`,
		"/k/pods/d/mount":   "10.0.0.1:/x fuse.nfs 0:52 rw rw user_id=0",
	} {
		m, ok, err := At(h, target)
		if err != nil || !ok || !m.IsNFS() {
			t.Fatalf("%s: %v, %t, %v", target, m, ok, err)
		}
		got := strings.Join([]string{m.Source, m.FsType, strings.TrimPrefix(h.bdi(m), h.BDI+"/"), strings.Join(m.Options, ","), strings.Join(m.SuperOptions, " ")}, " ")
		if got = strings.Replace(got, "/read_ahead_kb", "", 1); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	if m, ok, err := At(h, "/k/pods"); ok || err != nil {
		t.Errorf("%v, %v", m, err)
	}
	if m, _, _ := At(h, "/"); m.IsNFS() {
		t.Error("ext4 is no NFS")
	}
	list, err := h.Mounts()
	if err != nil || list[1].Source != "10.0.0.1:/exports/a b" {
		t.Errorf("%v, %v", list, err)
	}
	if _, _, err := At(&Host{MountInfo: "/none"}, "/"); err == nil {
		t.Error("no mountinfo, no error")
	}
}

func FuzzUnescape(f *testing.F) {
	f.Add(`a\040b\134`)
	f.Add(`\777\04`)
	f.Fuzz(func(t *testing.T, text string) {
		escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(text)
		must.Equal(t, unescape(escaped), text, "became")
		unescape(text)
	})
}

func TestReadAheadIsWrittenWhereMountInfoSays(t *testing.T) {
	h := hostWith(t, example)
	m, _, err := At(h, "/k/pods/b c/mount")
	must.Do(t, err)
	if err := h.SetReadAhead(m, 64); err == nil {
		t.Error("a device without a BDI was written")
	}
	if _, err := h.ReadAhead(m); err == nil {
		t.Error("a device without a BDI was read")
	}
	file := filepath.Join(h.BDI, "0:51", "read_ahead_kb")
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o750))
	must.Do(t, os.WriteFile(file, []byte("128\n"), 0o600))
	if kb, err := h.ReadAhead(m); kb != 128 || err != nil {
		t.Errorf("%d, %v", kb, err)
	}
	must.Do(t, h.SetReadAhead(m, 15360))
	if text, _ := os.ReadFile(file); !strings.HasPrefix(string(text), "15360") {
		t.Errorf("%q", text)
	}
}

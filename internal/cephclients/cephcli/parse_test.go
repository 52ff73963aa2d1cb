package cephcli

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// captured is what a command of a running Ceph 16.2.15 printed. e2e/ceph/fencing writes such files.
func captured(t testing.TB, family, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", family, name))
	must.Do(t, err)
	return content
}

// families are the directories of testdata, with the addresses of two nodes.
var families = map[string][2]netip.Addr{
	"ipv4": {netip.MustParseAddr("10.99.0.11"), netip.MustParseAddr("10.99.0.12")},
	"ipv6": {netip.MustParseAddr("2001:db8::b"), netip.MustParseAddr("2001:db8::c")},
}

func TestAnswersOfARealCeph(t *testing.T) {
	for family, nodes := range families {
		clients, err := ParseStatus(captured(t, family, "rbd-status.json"))
		must.Check(t, err == nil && slices.Equal(clients, nodes[:1]), "%s: rbd status gives %v, %v", family, clients, err)
		mounted, err := ParseClientLs(captured(t, family, "client-ls.json"))
		must.Do(t, err)
		for i, at := range []string{"/volumes/csi/csi-vol-1/4f2e", "/volumes/csi/csi-vol-1/4f2e-0"} {
			must.Equal(t, mounted[at], nodes[i:i+1], "%s: %s is mounted from", family, at)
		}
		for file, ranks := range map[string][]int{"mds-stat.json": {0}, "mds-stat-two.json": {0, 1}} {
			mdss, err := ParseMDSStat(captured(t, family, file))
			must.Check(t, err == nil && slices.Equal(mdss.Ranks["cephfs"], ranks) && len(mdss.Addresses) == 2, "%s %s: %+v, %v", family, file, mdss, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:0/4225036114":                             "[10.0.0.1]",
		"10.0.0.1:0":                                        "[10.0.0.1]",
		"[2001:db8::10:0]:0/5":                              "[2001:db8::10:0]",
		"v2:10.0.0.1:3300/7":                                "[10.0.0.1]",
		"any:[2001:db8::]:0/9":                              "[2001:db8::]",
		"[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]":           "[10.0.0.1]",
		"[v2:[2001:db8::1]:3300/2,v1:[2001:db8::1]:6789/2]": "[2001:db8::1]",
		"[v2:10.0.0.2:3300/0,v2:[2001:db8::1]:3300/0]":      "[10.0.0.2 2001:db8::1]",
		"[::ffff:10.0.0.1]:0/3":                             "[10.0.0.1]",
	} {
		if found, err := addresses("c", text); err != nil || fmt.Sprint(found) != want {
			t.Errorf("%s: %v, %v, want %s", text, found, err, want)
		}
	}
	for _, text := range []string{
		"", "-", ":/0", "10.0.0.1", "10.0.0.1/24", "2001:db8::", "2001:db8::1:0", "2001:db8::1:0/123", "[2001:db8::1]",
		"[2001:db8::1]/1", "10.0.0.1:0/", "10.0.0.1:0/-1", "10.0.0.1:65536/0", "10.0.0.1:0/1/2", "10.0.0.1:x/1", "10.0.0.256:0/1",
		"010.0.0.1:0/1", "0.0.0.0:0/0", "[::]:0/0", "v3:10.0.0.1:0/1", "v1:v2:10.0.0.1:0/1", "224.0.0.1:0/1", "[ff02::1]:0/1",
		"[fe80::1%eth0]:0/1", " 10.0.0.1:0/1", "10.0.0.1:0/1\n", "[]", "[v2:10.0.0.1:3300/0,]", "[v2:10.0.0.1:3300/0,v1:-]", "node-1:0/1",
	} {
		if found, err := addresses("c", text); err == nil {
			t.Errorf("%q gives %v", text, found)
		}
	}
}

func TestStatus(t *testing.T) {
	two := `{"watchers":[{"address":"10.0.0.2:0/1","client":4},{"address":"10.0.0.1:0/2","client":5},{"address":"10.0.0.1:0/3"}]}`
	if found, err := ParseStatus([]byte(two)); err != nil || fmt.Sprint(found) != "[10.0.0.1 10.0.0.2]" {
		t.Errorf("%v, %v", found, err)
	}
	for _, text := range []string{`{"watchers":[]}`, "\n {\"watchers\":[]} \n", `{"watchers":[],"migration":{"state":"executed"}}`} {
		if found, err := ParseStatus([]byte(text)); err != nil || len(found) != 0 {
			t.Errorf("%s: %v, %v", text, found, err)
		}
	}
	for _, text := range []string{
		"", " \n", "null", "{}", `{"watchers":null}`, `{"watchers":{"watcher":{"address":"10.0.0.1:0/1"}}}`, `{"watchers":[null]}`, `{"watchers":[{}]}`,
		`{"watchers":[{"address":"10.0.0.1:0/1"}`, `{"watchers":[{"address":"10.0.0.1:0/1"},{"address":"-"}]}`, `{"watchers":[]}{"watchers":[]}`,
		`{"watchers":[]} and more`, `[]`, "rbd: error opening image vol: (2) No such file or directory",
	} {
		if found, err := ParseStatus([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, found)
		}
	}
}

func session(inst, metadata string) string {
	return `[{"id":7,"state":"open","inst":"` + inst + `","client_metadata":` + metadata + `}]`
}

// A client may report any text about itself.
func TestClientLsReadsTheMountedPath(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`: "", `null`: "", `{"root":7}`: "", `{"root":{"a":1}}`: "", `{"root":""}`: "", `{"ROOT":"/b"}`: "",
		`{"root":"/a","Root":"/b"}`: "/a", `{"root":"a/b"}`: "/a/b", `{"root":"/a/../b//c/"}`: "/b/c", `{"root":"../.."}`: "/",
	} {
		mounted, err := ParseClientLs([]byte(session("client.7 v1:10.0.0.1:0/9", metadata)))
		if err != nil || want == "" && len(mounted) > 0 || want != "" && (len(mounted) != 1 || len(mounted[want]) != 1) {
			t.Errorf("%s: %v, %v", metadata, mounted, err)
		}
	}
	for _, text := range []string{"", "null", "{}", "[{}]", "[null]", "[] x", "mds.a: []", session("client.7", "{}"), session("client.7 -", "{}"), session("client.7 10.0.0.1:0/9 x", "{}"), strings.TrimSuffix(session("client.7 10.0.0.1:0/9", "{}"), "]")} {
		if found, err := ParseClientLs([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, found)
		}
	}
}

func TestMDSStat(t *testing.T) {
	const replaying = `{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"f","in":[0],"info":{` +
		`"gid_1":{"name":"a","rank":0,"state":"up:replay","addr":"10.0.0.1:6805/1"},` +
		`"gid_2":{"name":"b","rank":0,"state":"up:standby-replay","addr":"10.0.0.2:6805/1"}}}}]}}`
	if found, err := ParseMDSStat([]byte(replaying)); err != nil || len(found.Ranks) != 0 || len(found.Addresses) != 2 {
		t.Errorf("servers that do not serve yet: %v, %v", found, err)
	}
	half := strings.Replace(strings.Replace(replaying, `"in":[0]`, `"in":[0,1]`, 1), "up:replay", "up:active", 1)
	if found, err := ParseMDSStat([]byte(half)); err != nil || len(found.Ranks) != 0 {
		t.Errorf("one rank of two is served: %v, %v", found, err)
	}
	if found, err := ParseMDSStat([]byte(`{"fsmap":{"filesystems":[]}}`)); err != nil || len(found.Ranks) != 0 {
		t.Errorf("a Ceph without file systems: %v, %v", found, err)
	}
	for _, text := range []string{
		"", "{}", "[]", `{"fsmap":{}}`, `{"fsmap":{"filesystems":null}}`, `{"fsmap":{"filesystems":[],"standbys":[{"name":"a"}]}}`,
		`{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"a","info":{"gid_1":{"name":"a","rank":0,"state":"up:active"}}}}]}}`,
	} {
		if found, err := ParseMDSStat([]byte(text)); err == nil {
			t.Errorf("%s gives %v", text, found)
		}
	}
}

func TestMgrMetadata(t *testing.T) {
	found, err := ParseMgrMetadata([]byte("\n" + `[{"name":"x","addr":"10.99.0.6","addrs":"10.99.0.6:0/127","arch":"x86_64"},` +
		`{"name":"y","addr":"2001:db8::6","addrs":"[v2:[2001:db8::6]:6800/1,v1:[2001:db8::6]:6801/1]"},{"name":"z","addrs":"10.99.0.6:0/5"}]`))
	must.Check(t, err == nil && fmt.Sprint(found) == "[10.99.0.6 2001:db8::6]", "%v, %v", found, err)
	for _, text := range []string{"", "null", "{}", `[{}]`, `[{"name":"x"}]`, `[{"name":"x","addr":"10.99.0.6"}]`, `[{"name":"x","addrs":"-"}]`, "[][]"} {
		if found, err := ParseMgrMetadata([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, found)
		}
	}
}

package watchers

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// captured is the output of a command as a running Ceph 16.2.15 printed it.
// e2e/ceph/fencing writes such files, for each family of addresses.
func captured(t testing.TB, family, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", family, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// families are the directories of testdata, with the two nodes of each.
var families = map[string]struct{ node1, node2 netip.Addr }{
	"ipv4": {netip.MustParseAddr("10.99.0.11"), netip.MustParseAddr("10.99.0.12")},
	"ipv6": {netip.MustParseAddr("2001:db8::b"), netip.MustParseAddr("2001:db8::c")},
}

const (
	capturedVolume1 = "/volumes/csi/csi-vol-1/4f2e"
	capturedVolume2 = "/volumes/csi/csi-vol-1/4f2e-0"
)

func TestRBDStatusCaptured(t *testing.T) {
	for family, nodes := range families {
		found, err := ParseRBDStatus(captured(t, family, "rbd-status.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Address.IP != nodes.node1 || found[0].Address.Nonce == 0 || found[0].Client == 0 || found[0].Cookie == 0 {
			t.Errorf("%s: %v", family, found)
		}
	}
}

func TestRBDStatus(t *testing.T) {
	two := `{"watchers":[{"address":"10.0.0.2:0/1","client":4,"cookie":18446462598732840961},{"address":"10.0.0.1:0/2","client":5,"cookie":1}]}`
	found, err := ParseRBDStatus([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	if found[0].Cookie != 18446462598732840961 {
		t.Errorf("cookie %d", found[0].Cookie)
	}
	if got := RBDAddresses(found); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}) {
		t.Errorf("addresses %v", got)
	}
	for _, text := range []string{
		`{"watchers":[]}`, "\n {\"watchers\":[]} \n", `{"watchers":[],"migration":{"state":"executed"}}`,
		"2026-11-21T10:36:48.472+0000 7efe5e7c76c0 -1 librbd: words [\n{\"watchers\":[]}",
	} {
		if found, err := ParseRBDStatus([]byte(text)); err != nil || len(found) != 0 {
			t.Errorf("%s: %v, %v", text, found, err)
		}
	}
}

func TestRBDStatusRefuses(t *testing.T) {
	for _, text := range []string{
		"", " \n", "null", "{}", `{"watchers":null}`, `{"watchers":{"watcher":{"address":"10.0.0.1:0/1"}}}`, `{"watchers":[null]}`,
		`{"watchers":[{}]}`, `{"watchers":[{"address":"10.0.0.1:0/1"}]}`, `{"watchers":[{"address":"","client":1}]}`,
		`{"watchers":[{"address":"10.0.0.1:0/1","client":-1}]}`, `{"watchers":[{"address":"10.0.0.1:0/1","client":1}]`,
		`{"watchers":[{"address":"10.0.0.1:0/1","client":1},{"address":"-","client":2}]}`,
		`{"watchers":[]}{"watchers":[]}`, `{"watchers":[]} and more`, `mds.a: {"watchers":[]}`, `[]`,
		"rbd: error opening image vol: (2) No such file or directory", "Watchers: none",
	} {
		if found, err := ParseRBDStatus([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, found)
		}
	}
}

func TestClientLsCaptured(t *testing.T) {
	for family, nodes := range families {
		for _, sample := range []struct {
			clients, stat string
			answered      []string
		}{
			{"client-ls.txt", "mds-stat-two.json", []string{"a", "b"}},
			{"client-ls-standby.txt", "mds-stat.json", nil},
			{"client-ls-one.txt", "mds-stat.json", []string{""}},
		} {
			told, err := ParseClientLs(captured(t, family, sample.clients))
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(slices.Values(told.Answered)); sample.answered != nil && !slices.Equal(got, sample.answered) {
				t.Errorf("%s %s: %q answered", family, sample.clients, got)
			}
			mdss, err := ParseMDSStat(captured(t, family, sample.stat))
			if err != nil {
				t.Fatal(err)
			}
			if len(mdss.Hosts) != 2 {
				t.Errorf("%s: MDSs at %v", family, mdss.Hosts)
			}
			for path, node := range map[string]netip.Addr{capturedVolume1: nodes.node1, capturedVolume2: nodes.node2} {
				found, err := CephFSVolume{FileSystem: "cephfs", Path: path}.Clients(mdss, told)
				if err != nil {
					t.Fatal(err)
				}
				if got := Addresses(found); !slices.Equal(got, []netip.Addr{node}) {
					t.Errorf("%s %s: %s has clients at %v", family, sample.clients, path, got)
				}
				for _, client := range found {
					if !strings.HasPrefix(client.Hostname, "node-") || client.EntityID != "admin" || client.State != "open" || client.Address.Nonce == 0 {
						t.Errorf("%s: %+v", family, client)
					}
				}
			}
		}
	}
}

// sessionOf is a session as an MDS tells it, with what is read of it only.
func sessionOf(id, inst, entity, metadata string) string {
	return `{"id":` + id + `,"state":"open","inst":"` + inst + `","entity":` + entity + `,"client_metadata":` + metadata + `}`
}

const (
	entity1 = `{"name":{"type":"client","num":7},"addr":{"type":"v1","addr":"10.0.0.1:0","nonce":9}}`
	kernel1 = `{"client_features":{"feature_bits":"0x1"},"entity_id":"csi-cephfs-node","hostname":"worker-1","kernel_version":"6.1.0","root":"/volumes/csi/csi-vol-1/"}`
)

func TestClientLs(t *testing.T) {
	kernel := sessionOf("7", "client.7 v1:10.0.0.1:0/9", entity1, kernel1)
	told, err := ParseClientLs([]byte("2026-11-21T10:41:13.436+0000 7f12ceffd6c0  0 client.5168 ms_handle_reset on v2:[x\n\n" +
		"Error ENOSYS: \n\nmds.myfs-a.b_1: [" + kernel + "]\nmds.c: \nmds.d: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := CephFSClients{Answered: []string{"myfs-a.b_1", "d"}, Clients: []CephFSClient{{
		MDS: "myfs-a.b_1", ID: 7, State: "open", Root: "/volumes/csi/csi-vol-1", Hostname: "worker-1", EntityID: "csi-cephfs-node",
		Address: Address{IP: netip.MustParseAddr("10.0.0.1"), Nonce: 9},
	}}}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("%+v", told)
	}
	for path, number := range map[string]int{
		"/volumes/csi/csi-vol-1": 1, "/volumes/csi/csi-vol-1/": 1, "/volumes/csi/csi-vol": 0, "/volumes/csi/csi-vol-10": 0,
		"/volumes/csi": 0, "/": 0, "": 0, "/volumes/csi/csi-vol-1/x": 0,
	} {
		if got := len(told.At(path)); got != number {
			t.Errorf("%d clients at %q", got, path)
		}
	}
}

// The name of an MDS is of what follows on its line.
func TestClientLsSilentMDS(t *testing.T) {
	told, err := ParseClientLs([]byte("mds.a: \n[]\n"))
	if err != nil || !slices.Equal(told.Answered, []string{""}) {
		t.Errorf("%q answered, %v", told.Answered, err)
	}
}

// What a client says of itself may be anything.
func TestClientLsMetadata(t *testing.T) {
	for metadata, root := range map[string]string{
		`{}`: "", `null`: "", `{"root":7}`: "", `{"root":{"a":1}}`: "", `{"root":""}`: "", `{"ROOT":"/b"}`: "",
		`{"root":"/a","Root":"/b"}`: "/a", `{"root":"a/b"}`: "/a/b", `{"root":"/a/../b//c/"}`: "/b/c", `{"root":"../.."}`: "/",
	} {
		told, err := ParseClientLs([]byte("[" + sessionOf("7", "client.7 10.0.0.1:0/9", entity1, metadata) + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if got := told.Clients[0].Root; got != root {
			t.Errorf("%s: root %q", metadata, got)
		}
	}
}

func TestClientLsRefuses(t *testing.T) {
	good := sessionOf("7", "client.7 10.0.0.1:0/9", entity1, "{}")
	for _, text := range []string{
		"", "\n\n", "mds.a: \n", "Error ENOSYS: \n", "{}", "[{}]", "[null]", "[" + good, "[" + good + "] x", "x [" + good + "]",
		"mds.a [" + good + "]", "mds.-a: [" + good + "]", "mds.a: []\nmds.a: []", "[][]",
		"[" + sessionOf("7", "client.8 10.0.0.1:0/9", entity1, "{}") + "]",
		"[" + sessionOf("7", "client.7", entity1, "{}") + "]",
		"[" + sessionOf("7", "client.7 10.0.0.2:0/9", entity1, "{}") + "]",
		"[" + sessionOf("7", "client.7 10.0.0.1:0/8", entity1, "{}") + "]",
		"[" + sessionOf("7", "", "{}", "{}") + "]",
		"[" + sessionOf("7", "client.7 -", "{}", "{}") + "]",
		"[" + sessionOf("-7", "client.7 10.0.0.1:0/9", entity1, "{}") + "]",
		"Error connecting to cluster", strings.Repeat("[]", maxValues+1),
	} {
		if told, err := ParseClientLs([]byte(text)); err == nil {
			t.Errorf("%.200q gives %v", text, told)
		}
	}
	if _, err := ParseClientLs([]byte("[]" + strings.Repeat(" ", MaxOutput))); err == nil {
		t.Error("an answer of any size is taken")
	}
}

// Nobody is told of only if all who may know have told.
func TestFileSystemClients(t *testing.T) {
	fs := FileSystem{Name: "one", Ranks: []int{0, 1}, Active: map[int]string{0: "a", 1: "b"}}
	client := func(mds, root string) CephFSClient { return CephFSClient{MDS: mds, ID: 1, Root: root} }
	told := CephFSClients{Answered: []string{"a", "b", "x"}, Clients: []CephFSClient{client("a", "/v"), client("x", "/v"), client("b", "/w")}}
	of, err := fs.Clients(told)
	if err != nil {
		t.Fatal(err)
	}
	if got := of.At("/v"); len(got) != 1 || got[0].MDS != "a" {
		t.Errorf("of another file system: %v", got)
	}
	mdss := MDSMap{FileSystems: []FileSystem{fs}}
	if found, err := (CephFSVolume{FileSystem: "one", Path: "/w"}).Clients(mdss, told); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	for name, try := range map[string]func() error{
		"one is silent":      func() error { _, err := fs.Clients(CephFSClients{Answered: []string{"a", "x"}}); return err },
		"nobody told":        func() error { _, err := fs.Clients(CephFSClients{}); return err },
		"one of two, alone":  func() error { _, err := fs.Clients(CephFSClients{Answered: []string{""}}); return err },
		"a rank is unserved": func() error { fs := fs; fs.Ranks = []int{0, 1, 2}; _, err := fs.Clients(told); return err },
		"no rank":            func() error { _, err := FileSystem{}.Clients(told); return err },
		"no such file system": func() error {
			_, err := CephFSVolume{FileSystem: "two", Path: "/v"}.Clients(mdss, told)
			return err
		},
		"no path": func() error { _, err := CephFSVolume{FileSystem: "one"}.Clients(mdss, told); return err },
	} {
		if try() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMDSStatRefuses(t *testing.T) {
	for _, text := range []string{
		"", "{}", "[]", `{"fsmap":{}}`, `{"fsmap":{"filesystems":null}}`, `{"fsmap":{"filesystems":[],"standbys":[{"name":"a"}]}}`,
		`{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"a","info":{"gid_1":{"name":"a","rank":0,"state":"up:active"}}}}]}}`,
	} {
		if found, err := ParseMDSStat([]byte(text)); err == nil {
			t.Errorf("%s gives %v", text, found)
		}
	}
	const replaying = `{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"f","in":[0],"info":{` +
		`"gid_1":{"name":"a","rank":0,"state":"up:replay","addr":"10.0.0.1:6805/1"},` +
		`"gid_2":{"name":"b","rank":0,"state":"up:standby-replay","addr":"10.0.0.2:6805/1"}}}}]}}`
	if found, err := ParseMDSStat([]byte(replaying)); err != nil || len(found.FileSystems[0].Active) != 0 || len(found.Hosts) != 2 {
		t.Errorf("MDSs that don't serve yet: %v, %v", found, err)
	}
	if found, err := ParseMDSStat([]byte(`{"fsmap":{"filesystems":[]}}`)); err != nil || len(found.FileSystems) != 0 {
		t.Errorf("a Ceph without file systems: %v, %v", found, err)
	}
}

func TestBlocklistCaptured(t *testing.T) {
	for family, nodes := range families {
		for _, name := range []string{"blocklist.json", "blocklist-range.json"} {
			blocked, err := ParseBlocklist(captured(t, family, name))
			if err != nil {
				t.Fatal(err)
			}
			covers := func(a netip.Addr) bool {
				return slices.ContainsFunc(blocked, func(b Blocked) bool { return b.Covers(a) })
			}
			if !covers(nodes.node1) || covers(nodes.node2) {
				t.Errorf("%s %s: %v", family, name, blocked)
			}
			single := slices.IndexFunc(blocked, func(b Blocked) bool { return b.Client != nil })
			if single < 0 || blocked[single].Client.IP != nodes.node1 || blocked[single].Covers(nodes.node1) || blocked[single].Until.Year() != 2026 {
				t.Errorf("%s %s: the client whose lock was taken: %v", family, name, blocked)
			}
		}
	}
}

func TestBlocklist(t *testing.T) {
	const until = `,"until":"2026-11-21T11:38:49.440644+0000"}`
	for text, covered := range map[string]string{
		`[][]`: "", `[]`: "",
		`[][{"range":"10.1.0.0:0/16"` + until + `]`:                                 "10.1.2.3",
		`[][{"range":"[2001:db8::]:0/64"` + until + `]`:                             "2001:db8::7",
		`[{"addr":"v1:10.1.2.3:0/0"` + until + `]`:                                  "10.1.2.3",
		`[{"addr":"[2001:db8::]:0/0"` + until + `]`:                                 "2001:db8::",
		`[{"addr":"10.9.9.9:0/1"` + until + `,{"addr":"10.1.2.3:0/0"` + until + `]`: "10.1.2.3",
	} {
		blocked, err := ParseBlocklist([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if covered != "" && !blocked[len(blocked)-1].Covers(netip.MustParseAddr(covered)) {
			t.Errorf("%s does not cover %s", text, covered)
		}
		if slices.ContainsFunc(blocked, func(b Blocked) bool { return b.Covers(netip.MustParseAddr("10.9.9.9")) }) {
			t.Errorf("%s covers everybody at 10.9.9.9", text)
		}
	}
	for _, text := range []string{
		"", "{}", "null x", `[{}]`, `[{"addr":"10.0.0.1:0/0"}]`, `[{"addr":"10.0.0.1:0/0","until":"soon"}]`, `[{"addr":"10.0.0.1"` + until + `]`,
		`[][{"range":"10.1.0.0:0/33"` + until + `]`, `[][{"range":"10.1.0.0:1/16"` + until + `]`, `[{"addr":"10.0.0.1:0/0","range":"10.0.0.1:0/32"` + until + `]`,
	} {
		if blocked, err := ParseBlocklist([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, blocked)
		}
	}
}

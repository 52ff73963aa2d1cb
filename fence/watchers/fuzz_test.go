package watchers

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
)

// checked is what must hold for each address that is read, whatever it was read
// from.
func checked(t *testing.T, address Address) {
	t.Helper()
	ip := address.IP
	if !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() || ip.Is4In6() || ip.Zone() != "" {
		t.Fatalf("address %v", address)
	}
	again, err := ParseAddress(address.String())
	if err != nil || again != address {
		t.Fatalf("%v is read as %v, %v", address, again, err)
	}
}

func formatRBDStatus(found []RBDWatcher) []byte {
	type watcher struct {
		Address string `json:"address"`
		Client  uint64 `json:"client"`
		Cookie  uint64 `json:"cookie"`
	}
	list := []watcher{}
	for _, w := range found {
		list = append(list, watcher{w.Address.String(), w.Client, w.Cookie})
	}
	text, _ := json.Marshal(map[string]any{"watchers": list})
	return text
}

func FuzzRBDStatus(f *testing.F) {
	for family := range families {
		f.Add(captured(f, family, "rbd-status.json"))
	}
	f.Add([]byte(`{"watchers":[{"address":"[v2:[2001:db8::]:0/3,v1:[2001:db8::]:0/3]","client":4,"cookie":18446462598732840961}]}`))
	f.Add([]byte("2026-11-21T10:36:48.472+0000 7efe -1 x\n{\"watchers\":[]}"))
	f.Fuzz(func(t *testing.T, output []byte) {
		found, err := ParseRBDStatus(output)
		if err != nil {
			return
		}
		for _, watcher := range found {
			checked(t, watcher.Address)
		}
		again, err := ParseRBDStatus(formatRBDStatus(found))
		if err != nil || !reflect.DeepEqual(again, found) {
			t.Fatalf("%v is read as %v, %v", found, again, err)
		}
	})
}

// formatClientLs writes what is read of an answer of many MDSs.
func formatClientLs(told CephFSClients) []byte {
	var text []byte
	for _, mds := range told.Answered {
		sessions := []any{}
		for _, c := range told.Clients {
			if c.MDS != mds {
				continue
			}
			metadata := map[string]string{}
			for key, value := range map[string]string{"root": c.Root, "hostname": c.Hostname, "entity_id": c.EntityID} {
				if value != "" {
					metadata[key] = value
				}
			}
			sessions = append(sessions, map[string]any{
				"id": c.ID, "state": c.State, "inst": fmt.Sprintf("client.%d %s", c.ID, c.Address), "client_metadata": metadata,
				"entity": map[string]any{"addr": map[string]any{
					"addr": netip.AddrPortFrom(c.Address.IP, c.Address.Port).String(), "nonce": c.Address.Nonce}},
			})
		}
		list, _ := json.Marshal(sessions)
		text = append(text, '\n')
		if mds != "" {
			text = append(text, "mds."+mds+": "...)
		}
		text = append(append(text, list...), '\n')
	}
	return text
}

func FuzzClientLs(f *testing.F) {
	// What was captured is too long a seed: all time goes into making it shorter.
	f.Add([]byte("\n[" + sessionOf("7", "client.7 10.0.0.1:0/9", entity1, `{"root":"/"}`) + "]\n"))
	f.Add([]byte("\n\nmds.a: []\n\nmds.b: []\n"))
	f.Add([]byte("Error ENOSYS: \nmds.a: \nmds.b: [" + sessionOf("7", "client.7 v1:10.0.0.1:0/9", entity1, kernel1) + "]"))
	f.Fuzz(func(t *testing.T, output []byte) {
		told, err := ParseClientLs(output)
		if err != nil {
			return
		}
		if len(told.Answered) == 0 {
			t.Fatal("nobody answered, and that is no error")
		}
		for _, client := range told.Clients {
			checked(t, client.Address)
			if client.Root != "" && client.Root[0] != '/' {
				t.Fatalf("root %q", client.Root)
			}
		}
		again, err := ParseClientLs(formatClientLs(told))
		if err != nil || !reflect.DeepEqual(again, told) {
			t.Fatalf("%+v is read as %+v, %v", told, again, err)
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, text := range []string{"10.0.0.1:0/4225036114", "[2001:db8::]:0/1", "[v2:[2001:db8::1]:3300/2,v1:[2001:db8::1]:6789/2]", "2001:db8::1:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if address, err := ParseAddress(text); err == nil {
			checked(t, address)
		}
	})
}

func FuzzBlocklist(f *testing.F) {
	for family := range families {
		f.Add(captured(f, family, "blocklist.json"))
		f.Add(captured(f, family, "blocklist-range.json"))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		blocked, err := ParseBlocklist(output)
		if err != nil {
			return
		}
		for _, b := range blocked {
			if !b.Range.IsValid() || b.Client == nil && !b.Covers(b.Range.Addr()) || b.Client != nil && b.Covers(b.Range.Addr()) {
				t.Fatalf("%+v", b)
			}
			if b.Client != nil {
				checked(t, *b.Client)
			}
		}
	})
}

func FuzzMDSStat(f *testing.F) {
	f.Add([]byte(`{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"f","in":[0],"info":{"gid_1":` +
		`{"name":"a","rank":0,"state":"up:active","addr":"10.0.0.1:6805/1"}}}}],"standbys":[]}}`))
	f.Fuzz(func(t *testing.T, output []byte) {
		mdss, err := ParseMDSStat(output)
		if err != nil {
			return
		}
		for _, host := range mdss.Hosts {
			checked(t, Address{IP: host})
		}
	})
}

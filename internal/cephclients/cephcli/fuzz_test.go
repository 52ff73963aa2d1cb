package cephcli

import (
	"encoding/json"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// checked is what must hold for all addresses that are read, whatever they were read from.
func checked(t *testing.T, found []netip.Addr) {
	t.Helper()
	for _, ip := range found {
		must.True(t, ip.IsValid() && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.Is4In6() && ip.Zone() == "", "address %v", ip)
	}
	if !slices.IsSortedFunc(found, netip.Addr.Compare) || len(slices.Compact(slices.Clone(found))) != len(found) {
		t.Fatalf("not in order, or not once each: %v", found)
	}
}

func FuzzStatus(f *testing.F) {
	for family := range families {
		f.Add(captured(f, family, "rbd-status.json"))
	}
	f.Add([]byte(`{"watchers":[{"address":"[v2:[2001:db8::]:0/3,v1:[2001:db8::]:0/3]","client":4,"cookie":18446462598732840961}]}`))
	f.Fuzz(func(t *testing.T, output []byte) {
		found, err := ParseStatus(output)
		if err != nil {
			return
		}
		checked(t, found)
		var named struct{ Watchers []any }
		if json.Unmarshal(output, &named) == nil && (len(named.Watchers) == 0) != (len(found) == 0) {
			t.Fatalf("%d clients give %v", len(named.Watchers), found)
		}
	})
}

func FuzzClientLs(f *testing.F) {
	// Captured answers are too long as seeds: the fuzzer would only shorten them.
	f.Add([]byte(session("client.7 10.0.0.1:0/9", `{"root":"/"}`)))
	f.Add([]byte(session("client.7 v1:[2001:db8::1]:0/9", `{"Root":"/a","root":"b/../c"}`)))
	f.Fuzz(func(t *testing.T, output []byte) {
		mounted, err := ParseClientLs(output)
		if err != nil {
			return
		}
		for at, found := range mounted {
			must.True(t, at == path.Clean(at) && path.IsAbs(at) && len(found) != 0, "%q is mounted from %v", at, found)
			checked(t, slices.Compact(slices.SortedFunc(slices.Values(found), netip.Addr.Compare)))
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
		checked(t, mdss.Addresses)
		if len(mdss.Ranks) > 0 && len(mdss.Addresses) == 0 {
			t.Fatalf("served by no MDS: %+v", mdss)
		}
	})
}

func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"10.0.0.1:0/4225036114", "[2001:db8::]:0/1", "[v2:[2001:db8::1]:3300/2,v1:[2001:db8::1]:6789/2]", "2001:db8::1:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if found, err := addresses("c", text); err == nil {
			if checked(t, found); len(found) == 0 {
				t.Fatal("no address, and no error")
			}
		}
	})
}

// A word that is taken ends up in an argument: it must not be an option, or more than one word.
func FuzzVolume(f *testing.F) {
	f.Add("replicapool", "", "csi-vol-1", "", "")
	f.Add("", "", "", "cephfs", "/volumes/v")
	f.Add("-p", "n", "--image=x", "a:0", "/..")
	f.Fuzz(func(t *testing.T, pool, namespace, image, fileSystem, at string) {
		v := Volume{Pool: pool, Namespace: namespace, Image: image, FileSystem: fileSystem, Path: at}
		if v.Validate() != nil {
			return
		}
		words := []string{v.Pool, v.Image}
		if v.FileSystem != "" {
			words = []string{v.FileSystem}
		} else if v.Namespace != "" {
			words = append(words, v.Namespace)
		}
		for _, w := range words {
			must.True(t, w != "" && w[0] != '-' && !strings.ContainsAny(w, " \t\r\n/@:,*'\"\\$;&|<>`\x00"), "%q is taken", w)
		}
	})
}

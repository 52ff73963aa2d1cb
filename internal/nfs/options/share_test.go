package options

import (
	"net/netip"
	"path"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseShare(t *testing.T) {
	for want, shares := range map[string][]string{
		"":                 {"/", "/exports", "/gpfs/fs1", "/a b/ü", "/a..b/..c", "/exports/"},
		"empty":            {""},
		`write "/exports"`: {"exports", "/exports//", "//exports"},
		`write "/a/b"`:     {"/a/./b"},
		`names a server: write "/exports", and the server in the NFSService`: {"10.0.0.1:/exports", "nfs.example.com:/exports/"},
		"leads upwards": {"/..", "/exports/../etc", "/exports/..", "../a"},
		"control":       {"/a\x00b", "/a\nb"},
		"UTF-8":         {"/\xff"},
		"1025 bytes":    {"/" + strings.Repeat("a", 1024)},
	} {
		for _, share := range shares {
			got, err := ParseShare(share)
			switch {
			case want == "" && (err != nil || got != strings.TrimSuffix(share, "/") && got != "/"):
				t.Errorf("%q: %q, %v", share, got, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want) || got != ""):
				t.Errorf("%q: %q, %v, want %s", share, got, err, want)
			}
		}
	}
}

// The GKE driver, as csi-driver-nfs, mounts what a sub-directory leads to, ".." included.
func TestParseSubDir(t *testing.T) {
	values := map[string]string{VariablePVCName: "data", VariablePVName: "..", VariablePVCNamespace: "a/b"}
	for subDir, want := range map[string]string{
		"":                         "",
		"a/b":                      "a/b",
		"${pvc.metadata.name}":     "data",
		"x-${pvc.metadata.name}/y": "x-data/y",
		"${pvc.metadata.name}${pvc.metadata.name}": "datadata",

		"/a":                        "ERROR not a clean relative path: write \"a\"",
		"a/":                        "ERROR not a clean relative path",
		"a//b":                      "ERROR not a clean relative path",
		".":                         "ERROR not a clean relative path",
		"..":                        "ERROR leads upwards",
		"a/../../b":                 "ERROR leads upwards",
		"${pv.metadata.name}":       "ERROR leads upwards",
		".${pvc.metadata.uid}":      "ERROR unknown variable",
		"${pvc.metadata.namespace}": "ERROR is no name of a directory",
		"a\tb":                      "ERROR control",
	} {
		got, err := ParseSubDir(subDir, values)
		if fault, ok := strings.CutPrefix(want, "ERROR "); ok {
			if err == nil || !strings.Contains(err.Error(), fault) || got != "" {
				t.Errorf("%q: %q, %v, want %s", subDir, got, err, fault)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", subDir, got, err, want)
		}
	}
	if _, err := ParseSubDir("a/"+VariablePVCName, nil); err == nil {
		t.Error("a variable without a value")
	}
}

func TestSourceBracketsIPv6(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1": "10.0.0.1:/exports/a", "fd00::1": "[fd00::1]:/exports/a"} {
		must.Equal(t, Source(netip.MustParseAddr(address), "/exports", "a"), want)
	}
	must.Equal(t, Source(netip.MustParseAddr("10.0.0.1"), "/", ""), "10.0.0.1:/")
}

func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"/exports", "/a/../b", "a/${pvc.metadata.name}", "${pv.metadata.name}/..", "//", "/a/", "${${pv.metadata.name}"} {
		f.Add(seed, seed, "data")
		f.Add(seed, seed, "..")
	}
	f.Fuzz(func(t *testing.T, share, subDir, value string) {
		if !strings.HasPrefix(share, "/") {
			share = "/" + share
		}
		s, err := ParseShare(share)
		if err != nil {
			return
		}
		d, err := ParseSubDir(subDir, map[string]string{VariablePVCName: value, VariablePVName: value, VariablePVCNamespace: value})
		if err != nil {
			return
		}
		_, mounted, ok := strings.Cut(Source(netip.MustParseAddr("10.0.0.1"), s, d), ":")
		if !ok || path.Clean(mounted) != mounted || !strings.HasPrefix(mounted, strings.TrimSuffix(s, "/")) || strings.ContainsAny(mounted, "\x00\n") {
			t.Fatalf("share %q with %q mounts %q", s, d, mounted)
		}
		if rest := strings.TrimPrefix(mounted, s); rest != "" && s != "/" && rest[0] != '/' {
			t.Fatalf("share %q with %q mounts %q", s, d, mounted)
		}
		if strings.Contains("/"+mounted+"/", "/../") {
			t.Fatalf("%q leads upwards", mounted)
		}
	})
}

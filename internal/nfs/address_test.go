package nfs

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:2049", "10.0.0.1:20490": "10.0.0.1:20490", "fd00::1": "[fd00::1]:2049", "fd00::": "[fd00::]:2049", "[fd00::1]": "[fd00::1]:2049",
		"[fd00::1]:65535": "[fd00::1]:65535", "::ffff:10.0.0.1": "10.0.0.1:2049", "[::ffff:10.0.0.1]:80": "10.0.0.1:80", "FD00::A": "[fd00::a]:2049",
	} {
		got, err := ParseEndpoint(text, DefaultPort)
		must.Do(t, err)
		must.Equal(t, got.String(), want, "%q", text)
	}
	for want, texts := range map[string][]string{
		"empty":                  {"", ":2049"},
		"not an IP address":      {" 10.0.0.1", "010.0.0.1", "[10.0.0.1]:2049", "[fd00::1]x", "[fd00::1", "10.0.0.0/8"},
		"names are not resolved": {"nfs.example.com", "nfs.example.com:80"},
		"names no port":          {"10.0.0.1:", "[fd00::1]:"},
		"not a port":             {"10.0.0.1:0", "10.0.0.1:-1", "10.0.0.1:+1", "10.0.0.1:70000"},
		"unspecified":            {"0.0.0.0", "::"},
		"loopback":               {"127.0.0.1:2049", "::1", "::ffff:127.0.0.1"},
		"link-local":             {"169.254.1.1", "fe80::1", "224.0.0.1"},
		"zone":                   {"fe80::1%eth0", "fd00::1%eth0"},
		"multicast":              {"239.1.1.1"},
		"broadcast":              {"255.255.255.255"},
	} {
		for _, text := range texts {
			if got, err := ParseEndpoint(text, DefaultPort); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %s, %v, want %s", text, got, err, want)
			}
		}
	}
	if _, err := ParseEndpoint("fd00::1", 0); err == nil || !strings.Contains(err.Error(), "names no port") {
		t.Errorf("a missing port where one is needed: %v", err)
	}
}

// The GKE driver keeps the blank of "a, b", takes a trailing comma for an address,
// and counts duplicates twice (--ip-addresses is only checked for empty).
func TestEndpointListReportsAllProblems(t *testing.T) {
	got, problems := ParseEndpointList("--ip-addresses", "10.0.0.1, 10.0.0.2,server,10.0.0.1,,::1,fd00::1,", DefaultPort)
	want := []netip.AddrPort{
		netip.MustParseAddrPort("10.0.0.1:2049"), netip.MustParseAddrPort("10.0.0.2:2049"), netip.MustParseAddrPort("[fd00::1]:2049"),
	}
	must.Equal(t, got, want)
	must.Equal(t, fields(problems), []string{"--ip-addresses[2]", "--ip-addresses[3]", "--ip-addresses[4]", "--ip-addresses[5]", "--ip-addresses[7]"}, "problems: %v", problems)
	if !strings.Contains(problems[1].Message, "also --ip-addresses[0]") {
		t.Errorf("duplicate: %s", problems[1])
	}
	if problems.Err() == nil || Problems(nil).Err() != nil {
		t.Error("Err must be nil exactly when there are no problems")
	}
}

func fields(problems Problems) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Field)
	}
	return list
}

func FuzzParseEndpointList(f *testing.F) {
	for _, seed := range []string{"10.0.0.1, 10.0.0.2", "10.0.0.1,", "[fd00::1]:2049,fd00::1", "::ffff:1.2.3.4,1.2.3.4", "[fe80::1%e]:1", ":", "[]:1", "[::", "1.1.1.1:2:3", ""} {
		f.Add(seed, uint16(DefaultPort))
		f.Add(seed, uint16(0))
	}
	f.Fuzz(func(t *testing.T, text string, port uint16) {
		got, problems := ParseEndpointList("f", text, port)
		if elements := strings.Count(text, ",") + 1; len(got)+len(problems) != elements {
			t.Fatalf("%q: %d addresses and %d problems of %d elements", text, len(got), len(problems), elements)
		}
		for i, e := range got {
			a := e.Addr()
			if !a.IsGlobalUnicast() || a.Zone() != "" || a.Is4In6() || e.Port() == 0 {
				t.Fatalf("%q: %s cannot be published", text, e)
			}
			if slices.Contains(got[:i], e) {
				t.Fatalf("%q: %s is there twice", text, e)
			}
			if again, err := ParseEndpoint(e.String(), 0); err != nil || again != e {
				t.Fatalf("%q: %s reads back as %s, %v", text, e, again, err)
			}
		}
	})
}

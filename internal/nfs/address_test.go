package nfs

import (
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

func fields(problems Problems) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Field)
	}
	return list
}

func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "[fd00::1]:2049", "fd00::1", "::ffff:1.2.3.4", "[fe80::1%e]:1", ":", "[]:1", "[::", "1.1.1.1:2:3", ""} {
		f.Add(seed, uint16(DefaultPort))
		f.Add(seed, uint16(0))
	}
	f.Fuzz(func(t *testing.T, text string, port uint16) {
		e, err := ParseEndpoint(text, port)
		if err != nil {
			return
		}
		if a := e.Addr(); !a.IsGlobalUnicast() || a.Zone() != "" || a.Is4In6() || e.Port() == 0 {
			t.Fatalf("%q: %s cannot be published", text, e)
		}
		if again, err := ParseEndpoint(e.String(), 0); err != nil || again != e {
			t.Fatalf("%q: %s reads back as %s, %v", text, e, again, err)
		}
	})
}

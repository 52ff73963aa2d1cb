package rest

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestEndpointWithOrWithoutSchemeAndPort(t *testing.T) {
	for text, want := range map[string]string{
		"storageos": "http://storageos:5705/v2", "storageos:80": "http://storageos:80/v2", "10.0.0.1": "http://10.0.0.1:5705/v2", "storageos,other": "http://storageos,other:5705/v2",
		"https://storageos": "https://storageos:5705/v2", "https://storageos:443/": "https://storageos:443/v2", "https://storageos:443/v2": "https://storageos:443/v2",
		// The released manager gave these no port.
		"[::1]": "http://[::1]:5705/v2", "::1": "http://[::1]:5705/v2", "fd00::1": "http://[fd00::1]:5705/v2", "[fd00::1]:80": "http://[fd00::1]:80/v2", "https://[::1]": "https://[::1]:5705/v2",
	} {
		u, err := ParseEndpoint(text)
		must.Do(t, err)
		must.Equal(t, u.String(), want, "%q", text)
	}
	for _, text := range []string{"", "ftp://storageos", "http://", "http://u:geheim@storageos", "http://storageos/v1", "http://storageos?x=1", "a b", "http://u:geheim%zz@"} {
		if u, err := ParseEndpoint(text); err == nil || !strings.Contains(err.Error(), "write a host such as") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %s, %v", text, u, err)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{"storageos", "[::1]", "https://a:1/v2", "fd00::1%eth0", "http://u:p@h", ":5705", "//"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseEndpoint(text)
		if err != nil {
			return
		}
		if u.Hostname() == "" || u.Port() == "" || u.Path != "/v2" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Errorf("%q: %#v", text, u)
		}
		if again, err := ParseEndpoint(u.String()); err != nil || *again != *u {
			t.Errorf("%q: %s is read as %v, %v", text, u, again, err)
		}
	})
}

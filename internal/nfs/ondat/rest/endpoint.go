package rest

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// defaultPort of the control plane's API (openapi.yaml, servers).
const defaultPort = "5705"

// errEndpoint quotes nothing: the text may hold a password.
var errEndpoint = errors.New("write a host such as storageos, with a port if it is not 5705, or a URL such as https://storageos:5705; user name and password belong into the Secret")

// ParseEndpoint reads the address of the API, with or without scheme and port:
// storageos, 10.0.0.1:5705, [::1], https://storageos.example:443. The scheme is http
// unless one is given. It returns the URL of version 2 of the API.
func ParseEndpoint(text string) (*url.URL, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
		text = "[" + text + "]"
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.Hostname() == "" || strings.ContainsAny(u.Host, " \t") || strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v2") != "" {
		return nil, errEndpoint
	}
	return &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort)), Path: "/v2"}, nil
}

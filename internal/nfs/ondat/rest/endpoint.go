package rest

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// DefaultPort of the control plane's API (openapi.yaml, servers).
const DefaultPort = "5705"

// ParseEndpoint reads the address of the API, with or without scheme and port:
// storageos, 10.0.0.1:5705, [::1], https://storageos.example:443. The scheme is http
// unless one is given. It returns the URL of version 2 of the API.
func ParseEndpoint(text string) (*url.URL, error) {
	const write = `write a host such as storageos, with a port if it is not 5705, or a URL such as https://storageos:5705`
	if text == "" {
		return nil, fmt.Errorf("the endpoint is empty: %s", write)
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
		text = "[" + text + "]"
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the endpoint is not a URL: %s", write) // the error may quote a password
	case u.User != nil:
		return nil, fmt.Errorf("the endpoint holds a user: put user name and password into the secret, and %s", write)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the endpoint has scheme %q: %s", u.Scheme, write)
	case u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.Host, " \t"):
		return nil, fmt.Errorf("the endpoint %q has no host, or more than one: %s", text, write)
	case u.Path != "" && u.Path != "/" && strings.TrimSuffix(u.Path, "/") != "/v2":
		return nil, fmt.Errorf("the endpoint has path %q: %s", u.Path, write)
	}
	port := u.Port()
	if port == "" {
		port = DefaultPort
	}
	return &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(u.Hostname(), port), Path: "/v2"}, nil
}

package storage

import "testing"

func TestMountingClient(t *testing.T) {
	ready := Client{Pod: "a", Network: netA, Reported: true, Ready: true}
	with := func(change func(*Client)) Client {
		c := ready
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		clients []Client
		applied Attachment
		reason  string
	}{
		"ready on the network":      {[]Client{ready}, netA, ""},
		"ready, no network applied": {[]Client{with(func(c *Client) { c.Network, c.Reported = Attachment{}, false })}, Attachment{}, ""},
		"none":                      {nil, netA, ReasonNoClient},
		"not Ready":                 {[]Client{with(func(c *Client) { c.Ready = false })}, netA, ReasonNoClient},
		"terminating":               {[]Client{with(func(c *Client) { c.Terminating = true })}, netA, ReasonNoClient},
		"no address yet":            {[]Client{with(func(c *Client) { c.Reported = false })}, netA, ReasonNoClient},
		"on another network":        {[]Client{with(func(c *Client) { c.Network = netB })}, netA, ReasonNoClient},
		"on the network as well": {[]Client{with(func(c *Client) {
			c.Network, c.NetworksReported = netB, []Attachment{netB, netA}
		})}, netA, ""},
		"two":                          {[]Client{ready, with(func(c *Client) { c.Pod = "b" })}, netA, ReasonSeveralClients},
		"one of two is terminating":    {[]Client{with(func(c *Client) { c.Terminating = true }), ready}, netA, ReasonSeveralClients},
		"one of two has yet to become": {[]Client{ready, with(func(c *Client) { c.Ready = false })}, netA, ReasonSeveralClients},
	} {
		got, reason := MountingClient(test.clients, test.applied)
		if reason != test.reason || (got == nil) != (reason != "") {
			t.Errorf("%s: got %v, %q", name, got, reason)
		}
	}
}

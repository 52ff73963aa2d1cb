package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMountingClient(t *testing.T) {
	ready := Client{Pod: "a", Network: netA, Reported: true, Ready: true}
	notReady := with(ready, func(c *Client) { c.Ready = false })
	terminating := with(ready, func(c *Client) { c.Terminating = true })
	onTwo := with(ready, func(c *Client) { c.Network, c.NetworksReported = netB, []multus.Attachment{netB, netA} })
	for name, test := range map[string]struct {
		clients []Client
		applied multus.Attachment
		reason  string
	}{
		"ready on the network":      {[]Client{ready}, netA, ""},
		"ready, no network applied": {[]Client{with(ready, func(c *Client) { c.Network, c.Reported = multus.Attachment{}, false })}, multus.Attachment{}, ""},
		"ready on two networks":     {[]Client{onTwo}, netA, ""},
		"none":                      {nil, netA, ReasonNoClient},
		"not Ready":                 {[]Client{notReady}, netA, ReasonNoClient},
		"terminating":               {[]Client{terminating}, netA, ReasonNoClient},
		"no address":                {[]Client{with(ready, func(c *Client) { c.Reported = false })}, netA, ReasonNoClient},
		"on another network":        {[]Client{with(ready, func(c *Client) { c.Network = netB })}, netA, ReasonNoClient},
		"one of two is terminating": {[]Client{terminating, ready}, netA, ReasonSeveralClients},
		"one of two is not Ready":   {[]Client{ready, notReady}, netA, ReasonSeveralClients},
	} {
		got, reason := MountingClient(test.clients, test.applied)
		must.Check(t, reason == test.reason && (got == nil) == (reason != ""), "%s: got %v, %q", name, got, reason)
	}
}

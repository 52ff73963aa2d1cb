package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestNetworkMatrix checks each row of Longhorn's table of networks through the API server: for both settings, the newer one
// in both groups, both IP families, and a cluster domain that is not cluster.local.
func TestNetworkMatrix(t *testing.T) {
	const domain = "storage.example"
	c := newCluster(t, options{clusterDomain: domain, webhooks: 1, controllers: 1})
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-matrix", Shared: true}))
	const a1, a2, b2 = netA + "@lhnet1", netA + "@lhnet2", netB + "@lhnet2"
	rows := []struct {
		storage, enabled, endpoint string
		want                       string
	}{
		{storage: netA, enabled: "true", want: a1},
		{storage: netA, endpoint: netA, want: a2},
		{endpoint: netA, want: a2},
		{endpoint: netB, want: b2},
		{storage: netA, endpoint: netB, want: b2},
		{storage: netA, enabled: "false"},
		{},
	}
	for _, group := range []string{own, system} {
		if group == system { // from 1.11 on Longhorn has the endpoint network as a setting of its own
			c.kubectl("-n", namespace, "patch", own, string(catalog.EndpointNetworkForRWX), "--type=merge", "-p", `{"value":null}`)
			_, err := c.Kubectl(t.Context(), fmt.Sprintf("apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: %s, namespace: %s}\nvalue: \"\"\n", catalog.EndpointNetworkForRWX, namespace), "create", "-f", "-")
			c.must(err)
		}
		for _, row := range rows {
			c.run(fmt.Sprintf("%s storage=%q enabled=%q endpoint=%q", group, row.storage, row.enabled, row.endpoint), func(t *testing.T, c *cluster) {
				if row.enabled == "" {
					row.enabled = "false"
				}
				c.set(system, string(catalog.StorageNetwork), row.storage)
				c.set(system, string(catalog.StorageNetworkForRWX), row.enabled)
				c.set(group, string(catalog.EndpointNetworkForRWX), row.endpoint)
				c.waitApplied(row.want)
				c.checkRow("pvc-matrix", row.want, domain)
			})
		}
	}
}

// checkRow attaches the volume, and checks everything that the network of RWX volumes decides.
func (c *cluster) checkRow(volume, want, domain string) {
	c.t.Helper()
	lh := c.Longhorn()
	c.must(lh.Attach(c.t.Context(), volume, "node-1"))
	defer func() { c.must(lh.Detach(c.t.Context(), volume)) }()
	c.must(c.clientsOn(want, c.State.Nodes...))
	c.servedIn(domain, volume, want)
	if want == "" {
		return
	}
	attachment, err := multus.ParseAttachment(want)
	c.must(err)
	c.eventually("addresses of both families", 10*time.Second, func() error {
		addresses, err := invariants.ReportedAddresses(c.server(volume).Annotations, attachment)
		if err != nil || len(addresses) != 2 || !addresses[0].Is4() || !addresses[1].Is6() {
			return fmt.Errorf("reported: %v, %v", addresses, err)
		}
		return nil
	})
}

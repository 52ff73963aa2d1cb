package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMountPlace(t *testing.T) {
	none := map[catalog.Name]string{}
	old := func(network, enabled string) map[catalog.Name]string {
		return map[catalog.Name]string{catalog.StorageNetwork: network, catalog.StorageNetworkForRWX: enabled}
	}
	newer := func(network, endpoint string) map[catalog.Name]string {
		return map[catalog.Name]string{catalog.StorageNetwork: network, catalog.EndpointNetworkForRWX: endpoint, catalog.StorageNetworkForRWX: "true"} // the last is left over
	}
	for name, test := range map[string]struct {
		system map[catalog.Name]string
		want   rwx.MountPlace
	}{
		"no settings":                         {none, rwx.InHost},
		"off":                                 {old("kube-system/a", "false"), rwx.InHost},
		"on without a storage network":        {old("", "true"), rwx.InHost},
		"on":                                  {old("kube-system/a", "true"), rwx.InClient},
		"not a boolean: Longhorn can't mount": {old("kube-system/a", "perhaps"), ""},
		"from 1.11, no endpoint network":      {newer("kube-system/a", ""), rwx.InHost},
		"from 1.11, beside a storage network": {newer("kube-system/a", "kube-system/b"), rwx.InClient},
		"from 1.11, without storage network: pods share a mount": {newer("", "kube-system/b"), rwx.InEither},
	} {
		must.Equal(t, MountPlace(test.system, longhorn.DefaultNames()), test.want, "%s", name)
	}
	always := longhorn.DefaultNames()
	always.MountsFromHost = false
	must.Equal(t, MountPlace(none, always), rwx.InClient, "a Longhorn that never mounts from the host")
}

func TestMountsMissServers(t *testing.T) {
	one := multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	for name, test := range map[string]struct {
		ip       string
		recorded multus.Attachment
		clients  multus.Attachment
		place    rwx.MountPlace
		want     bool
	}{
		"recorded network, from the node":    {rwx.ClusterIPNone, one, multus.Attachment{}, rwx.InHost, true},
		"clients' network, from the node":    {rwx.ClusterIPNone, multus.Attachment{}, one, rwx.InHost, true},
		"no network, from the node":          {rwx.ClusterIPNone, multus.Attachment{}, multus.Attachment{}, rwx.InHost, false},
		"cluster IP, from the node":          {"10.43.0.7", one, one, rwx.InHost, false},
		"recorded network, in client pods":   {rwx.ClusterIPNone, one, one, rwx.InClient, false},
		"recorded network, values not known": {rwx.ClusterIPNone, one, one, "", false},
	} {
		service := &rwx.Service{ClusterIP: test.ip, Recorded: test.recorded}
		must.Equal(t, MountsMiss(service, test.clients, test.place), test.want, "%s", name)
	}
}

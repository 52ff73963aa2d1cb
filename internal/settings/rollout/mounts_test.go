package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
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
		want   storage.MountPlace
	}{
		"no settings":                         {none, storage.InHost},
		"off":                                 {old("kube-system/a", "false"), storage.InHost},
		"on without a storage network":        {old("", "true"), storage.InHost},
		"on":                                  {old("kube-system/a", "true"), storage.InClient},
		"not a boolean: Longhorn can't mount": {old("kube-system/a", "perhaps"), ""},
		"from 1.11, no endpoint network":      {newer("kube-system/a", ""), storage.InHost},
		"from 1.11, beside a storage network": {newer("kube-system/a", "kube-system/b"), storage.InClient},
		"from 1.11, without storage network: pods share a mount": {newer("", "kube-system/b"), storage.InEither},
	} {
		must.Equal(t, MountPlace(test.system, longhorn.Profile()), test.want, "%s", name)
	}
	always := longhorn.Profile()
	always.MountsFromHost = false
	must.Equal(t, MountPlace(none, always), storage.InClient, "a profile that never mounts from the host")
}

func TestMountsMissServers(t *testing.T) {
	one := storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	for name, test := range map[string]struct {
		ip       string
		recorded storage.Attachment
		clients  storage.Attachment
		place    storage.MountPlace
		want     bool
	}{
		"recorded network, from the node":    {storage.ClusterIPNone, one, storage.Attachment{}, storage.InHost, true},
		"clients' network, from the node":    {storage.ClusterIPNone, storage.Attachment{}, one, storage.InHost, true},
		"no network, from the node":          {storage.ClusterIPNone, storage.Attachment{}, storage.Attachment{}, storage.InHost, false},
		"cluster IP, from the node":          {"10.43.0.7", one, one, storage.InHost, false},
		"recorded network, in client pods":   {storage.ClusterIPNone, one, one, storage.InClient, false},
		"recorded network, values not known": {storage.ClusterIPNone, one, one, "", false},
	} {
		service := &storage.Service{ClusterIP: test.ip, Recorded: test.recorded}
		must.Equal(t, MountsMiss(service, test.clients, test.place), test.want, "%s", name)
	}
}

package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
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
		if got := MountPlace(test.system, storage.Longhorn()); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	always := storage.Longhorn()
	always.MountsFromHost = false
	if got := MountPlace(none, always); got != storage.InClient {
		t.Errorf("a profile that never mounts from the host: got %q", got)
	}
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
		if got := MountsMiss(service, test.clients, test.place); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

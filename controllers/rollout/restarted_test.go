package rollout

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// docs/operations.md has fairlead_component_restarts_total count what is
// restarted: CSI plugin pods are what the RWX network settings restart.
func TestRestartsOfClientPodsAreCountedBySetting(t *testing.T) {
	theirs := func(name catalog.Name, value string) client.Object {
		s := &longhorn.Setting{Value: value}
		s.Namespace, s.Name = profile.Namespace, string(name)
		return s
	}
	for name, test := range map[string]struct {
		objects []client.Object
		value   string // of endpoint-network-for-rwx-volume
		on      storage.Attachment
		want    map[catalog.Name]float64
	}{
		"the RWX network": {value: netTwo.Network.String(), on: netOne, want: map[catalog.Name]float64{catalog.EndpointNetworkForRWX: 1}},
		"the older one, and the network that it follows": {
			objects: []client.Object{theirs(catalog.StorageNetwork, "kube-system/two"), theirs(catalog.StorageNetworkForRWX, "true")},
			on:      netOne, want: map[catalog.Name]float64{catalog.EndpointNetworkForRWX: 1, catalog.StorageNetworkForRWX: 1, catalog.StorageNetwork: 1},
		},
		"a storage network that RWX volumes do not follow": {
			objects: []client.Object{theirs(catalog.StorageNetwork, "kube-system/two")}, value: netTwo.Network.String(),
			on: netOne, want: map[catalog.Name]float64{catalog.EndpointNetworkForRWX: 1},
		},
		"what the template is built with, where the network is as it should be": {
			objects: []client.Object{theirs(catalog.PriorityClass, "high"), theirs(catalog.GuaranteedCPU, "20")}, value: netTwo.Network.String(),
			on: netTwo, want: map[catalog.Name]float64{catalog.PriorityClass: 1},
		},
		"no setting": {value: netTwo.Network.String(), on: netTwo, want: map[catalog.Name]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne, test.objects...)
			registry := prometheus.NewRegistry()
			counter, err := kit.RestartCounter(registry, profile.Name)
			f.Must(err)
			f.r.restarts = counter
			var own v1alpha1.Setting
			f.Must(f.API.Get(t.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: string(catalog.EndpointNetworkForRWX)}, &own))
			own.Value = &test.value
			f.Must(f.API.Update(t.Context(), &own))
			var pod corev1.Pod
			f.Must(f.API.Get(t.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: "csi"}, &pod))
			clients := []storage.Client{
				{Pod: "csi", UID: string(pod.UID), Node: "node-1", Network: test.on},
				{Pod: "gone", UID: "x", Node: "node-2", Network: test.on},
			}
			f.Must(f.r.restartClients(t.Context(), rollout.Record{Clients: netTwo}, clients))
			families, err := registry.Gather()
			f.Must(err)
			got := map[catalog.Name]float64{}
			for _, family := range families {
				for _, series := range family.Metric {
					for _, label := range series.Label {
						if label.GetName() == "setting" {
							got[catalog.Name(label.GetValue())] = series.GetCounter().GetValue()
						}
					}
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

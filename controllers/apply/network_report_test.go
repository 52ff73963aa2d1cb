package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestProgressIsWrittenEveryFiveSeconds(t *testing.T) {
	f := newFixture(t, netOne)
	wanted := func(n int32) {
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) { ds.Status.DesiredNumberScheduled = n })
	}
	wanted(3)
	f.comeToRest() // a new leader writes at once
	wanted(2)
	result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
	f.Must(err)
	if got := f.rollout().Status.Clients.Total; got != 3 || result.RequeueAfter != progressEvery {
		t.Fatalf("%d clients are reported at once; the next look is in %s", got, result.RequeueAfter)
	}
	f.Pass(progressEvery)
	f.Must(f.reconcile())
	if got := f.rollout().Status.Clients.Total; got != 2 {
		t.Fatalf("%d clients are reported after %s", got, progressEvery)
	}
	f.choose(netTwo) // is reported at once
	f.Must(f.reconcile())
	f.Must(f.reconcile())
	if got := f.rollout().Status.Desired; got != netTwo.String() {
		t.Fatalf("the desired network is %q", got)
	}
}

// An installation of Multus is no event: its kind can't be watched before.
func TestNetworksAreWatchedOnceInstalled(t *testing.T) {
	f := newFixture(t, netOne)
	f.comeToRest()
	watched, installed := 0, false
	f.r.watchNetworks = func() error { watched++; return nil }
	multus := f.API.Client()
	multus.Reading = func(o runtime.Object) error {
		if !installed && o.GetObjectKind().GroupVersionKind().Group == reads.NetworkKind.Group {
			return &meta.NoKindMatchError{GroupKind: reads.NetworkKind.GroupKind()}
		}
		return nil
	}
	f.r.Cached = reads.NewReader(names, multus, multus)
	f.r.Live = f.r.Cached
	result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
	f.Must(err)
	must.True(t, watched == 0 && result.RequeueAfter == 30*time.Second, "watched %d times, next look in %s", watched, result.RequeueAfter)
	installed = true
	for range 2 {
		f.Must(f.reconcile())
	}
	must.True(t, watched == 1, "watched %d times", watched)
}

// fairlead_component_restarts_total counts CSI plugin pods for the settings that choose the RWX network.
func TestRestartsOfClientPodsAreCountedBySetting(t *testing.T) {
	const rwxNetwork, older, storageNetwork, class = catalog.EndpointNetworkForRWX, catalog.StorageNetworkForRWX, catalog.StorageNetwork, catalog.PriorityClass
	two := netTwo.Network.String()
	for name, test := range map[string]struct {
		objects []client.Object
		value   string // of endpoint-network-for-rwx-volume
		on      multus.Attachment
		want    []catalog.Name
	}{
		"RWX network": {nil, two, netOne, []catalog.Name{rwxNetwork}},
		"older setting, and the network that it follows": {
			[]client.Object{objects.LonghornSetting(storageNetwork, two), objects.LonghornSetting(older, "true")}, "", netOne, []catalog.Name{rwxNetwork, older, storageNetwork},
		},
		"older setting in another spelling": {
			[]client.Object{objects.LonghornSetting(storageNetwork, two), objects.LonghornSetting(older, "True")}, "", netOne, []catalog.Name{rwxNetwork, older, storageNetwork},
		},
		"storage network that RWX volumes do not follow": {[]client.Object{objects.LonghornSetting(storageNetwork, two)}, two, netOne, []catalog.Name{rwxNetwork}},
		"template, on the right network": {
			[]client.Object{objects.LonghornSetting(class, "high"), objects.LonghornSetting(catalog.GuaranteedCPU, "20")}, two, netTwo, []catalog.Name{class},
		},
		"no setting": {nil, two, netTwo, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne, test.objects...)
			f.set(test.value)
			for _, setting := range test.want {
				if _, counted := testkit.Metric(t, f.Registry, "fairlead_component_restarts_total", string(setting), clientKind); !counted {
					t.Errorf("%s is not counted from zero", setting)
				}
			}
			facts, made, err := f.r.look(t.Context(), f.r.Live, nil)
			f.Must(err)
			facts.Rollout.Record.Clients = netTwo
			f.Must(f.r.restartClient(t.Context(), facts, rwx.Client{Pod: "csi", UID: string(f.pod().UID), Node: "node-1", Network: test.on}, made.Settings))
			if err := f.r.restartClient(t.Context(), facts, rwx.Client{Pod: "gone", UID: "x", Node: "node-2", Network: test.on}, made.Settings); !kit.IsStale(err) {
				t.Errorf("a pod that is gone: %v", err)
			}
			for _, setting := range test.want {
				if got := f.Metric("fairlead_component_restarts_total", string(setting)); got != 1 {
					t.Errorf("%s: counted %v", setting, got)
				}
			}
			if got := f.Metric("fairlead_component_restarts_total"); got != float64(len(test.want)) {
				t.Errorf("counted %v, want %d", got, len(test.want))
			}
		})
	}
}

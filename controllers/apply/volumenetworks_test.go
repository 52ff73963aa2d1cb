package apply

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var onX = multus.VolumeAttachment(multus.Network{Namespace: "team-x", Name: "nfs"})

// withVolume is a fixture at rest on network one, with the detached volume v and its claim.
func withVolume(t *testing.T) *fixture {
	t.Helper()
	claim := objects.Claim("data", "")
	claim.UID = "uid"
	f := newFixture(t, multus.Attachment{}, serviceOf("v"), objects.LonghornVolume("v", "", objects.RWX), claim,
		objects.Volume("v", names.Driver, "v", "data", objects.Shared, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "uid" }))
	f.r.VolumeNetworks, f.r.Policy.Settle = true, rollout.DefaultSettle
	f.choose(netOne)
	f.run()
	f.wantApplied()
	return f
}

// run reconciles, and does what Kubernetes and Multus do, until all is at rest.
func (f *fixture) run() {
	f.Helper()
	for range 20 {
		f.Must(f.reconcile())
		template := f.daemonSet().Spec.Template.Annotations[multus.NetworksAnnotation]
		f.changeDaemonSet(func(ds *appsv1.DaemonSet) {
			ds.Status.ObservedGeneration = ds.Generation
			if ds.Annotations["made"] != template {
				ds.Annotations["made"] = template
				ds.Annotations[appsv1.DeprecatedTemplateGeneration] += "1"
			}
		})
		pod := clientPod(f.daemonSet().Annotations[appsv1.DeprecatedTemplateGeneration], template)
		f.Must(client.IgnoreAlreadyExists(f.Create(f.Context(), pod)))
	}
}

// request changes the annotations of the claim.
func (f *fixture) request(annotations map[string]string) {
	f.Helper()
	testkit.Change(f.Bench, "default", "data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = annotations })
	f.run()
}

// wantWaiting wants a roll-out with one blocker, whose message contains a text.
func (f *fixture) wantWaiting(text string) {
	f.Helper()
	s := f.rollout().Status
	if s.Phase != "Waiting" || len(s.Blockers) != 1 || s.Blockers[0].Kind != "Network" || !strings.Contains(s.Blockers[0].Message, text) || !strings.Contains(s.Message, text) {
		f.Fatalf("want a wait for %q, got %+v", text, s)
	}
}

func (f *fixture) wantServiceOn(network multus.Attachment) {
	f.Helper()
	if s := f.service("v"); s.Spec.ClusterIP != "None" || s.Annotations[rwx.NetworkAnnotation] != network.String() || s.Annotations[rwx.AddressesAnnotation] != "10.0.0.9/24" {
		f.Errorf("the Service is %+v", s)
	}
}

func (f *fixture) wantTemplate(networks string) {
	f.Helper()
	if got := f.daemonSet().Spec.Template.Annotations[multus.NetworksAnnotation]; got != networks {
		f.Errorf("the template requests %s, want %s", got, networks)
	}
}

func TestVolumeMovesToItsNetworkAndBack(t *testing.T) {
	const common = `{"namespace": "kube-system", "name": "one", "interface": "lhnet2"}`
	f := withVolume(t)
	f.request(map[string]string{rwx.VolumeNetworkAnnotation: "team-x/nfs", rwx.VolumeAddressesAnnotation: "10.0.0.9/24"})
	f.wantWaiting("team-x/nfs")
	if got := f.rollout().Status.Clients.VolumeNetworks; len(got) != 0 {
		t.Fatalf("clients join a network that does not exist: %q", got)
	}
	f.Must(f.Create(t.Context(), networkObject(onX)))
	f.run()
	f.wantTemplate(`[` + common + `, {"namespace": "team-x", "name": "nfs", "interface": "` + onX.Interface + `"}]`)
	if got := f.daemonSet().Spec.UpdateStrategy.Type; got != appsv1.RollingUpdateDaemonSetStrategyType {
		t.Errorf("the update strategy is %s", got)
	}
	f.wantServiceOn(onX)
	f.wantApplied()
	if got := f.rollout().Status.Servers.VolumeNetworks; len(got) != 1 || got[0] != onX.String() {
		t.Errorf("servers are on %q", got)
	}

	f.request(map[string]string{rwx.VolumeAddressesAnnotation: "10.0.0.9/24"})
	f.wantServiceOn(netOne)
	if s := f.rollout().Status; s.Phase != "Waiting" || len(s.Servers.VolumeNetworks) != 0 || len(s.Clients.VolumeNetworks) != 1 {
		t.Errorf("clients leave before Services have settled: %+v", s)
	}
	f.Pass(rollout.DefaultSettle)
	f.run()
	f.wantApplied()
	if got := f.rollout().Status.Clients.VolumeNetworks; len(got) != 0 {
		t.Errorf("clients are on %q", got)
	}
	f.wantTemplate("[" + common + "]")
}

// At rest, nothing else depends on whether the network exists: running pods keep it.
func TestDeletedNetworkIsReported(t *testing.T) {
	const text = " was deleted: CSI plugin pods, and the server pods of "
	const advice = ", cannot restart without it: recreate it"
	for name, test := range map[string]struct {
		network multus.Attachment
		request map[string]string
		want    string
	}{
		"default network":    {netOne, nil, "NetworkAttachmentDefinition kube-system/one" + text + "RWX volumes" + advice},
		"per-volume network": {onX, map[string]string{rwx.VolumeNetworkAnnotation: "team-x/nfs"}, "NetworkAttachmentDefinition team-x/nfs" + text + "v" + advice},
	} {
		t.Run(name, func(t *testing.T) {
			f := withVolume(t)
			f.Must(client.IgnoreAlreadyExists(f.Create(t.Context(), networkObject(test.network))))
			f.request(test.request)
			f.wantApplied()
			f.Must(f.Delete(t.Context(), networkObject(test.network)))
			f.run()
			f.wantWaiting(test.want)
			if s := f.rollout().Status; test.request == nil && s.Message != "RWX volumes are on kube-system/one; "+test.want {
				t.Errorf("got %q", s.Message)
			}
			if result, err := f.r.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != 0 {
				t.Errorf("the creation is an event, yet there is a next look: %+v, %v", result, err)
			}
			f.Must(f.Create(t.Context(), networkObject(test.network)))
			f.run()
			f.wantApplied()
		})
	}
}

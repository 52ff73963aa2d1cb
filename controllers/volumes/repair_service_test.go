package volumes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	replaced = "Normal Repaired: Service v was deleted and server pod share-manager-v restarted, so that Longhorn creates both on the cluster network: "
	waits    = "; Service v is replaced when no started workload uses the volume: "
	unused   = ", and no started workload uses the volume"
)

// Longhorn made the Service and the server pod by a setting's value while the
// webhooks were away: createServiceManifest of longhorn-manager v1.7.2.
func TestUnpublishedServiceIsReplaced(t *testing.T) {
	const wrong = "Service v is headless, and CSI plugin pods are on no network: nothing is published for it"
	for name, test := range map[string]struct {
		user   *corev1.Pod
		optOut bool
		stays  bool
		want   []string
	}{
		"no workload has started": {
			user: user(), want: []string{replaced + wrong + unused},
		},
		"a workload has started": {
			user: user(sandbox("True"), ran), stays: true,
			want: []string{"Warning OutOfLine: " + wrong + waits + "pod default/web-0 does"},
		},
		"the Service opts out": {user: user(), optOut: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(), test.user)
			change(f, longhorn.Name, func(r *v1alpha1.NetworkRollout) { r.Status.Clients.Network, r.Status.Servers.Network = "", "" })
			change(f, "v", func(s *corev1.Service) {
				s.Annotations = nil
				if test.optOut {
					s.Annotations = map[string]string{rwx.OptOutAnnotation: "true"}
				}
			})
			f.reconcile()
			gone := f.service() == nil
			must.Check(t, gone != test.stays && (f.serverUID() == "") != test.stays, "Service gone: %v, server pod %q", gone, f.serverUID())
			must.Check(t, slices.Equal(f.Events.Notes(), test.want), "got events %q, want %q", f.Events.Notes(), test.want)
		})
	}
}

// While RWX volumes leave the network, a volume that was attached again too soon for its
// Service to be replaced is on the network, and Longhorn mounts from the node's network.
func TestServiceLeftOnNetworkIsReplaced(t *testing.T) {
	const wrong = "Service v is for kube-system/one@lhnet1, and volumes are mounted from the node's network"
	for name, test := range map[string]struct {
		user    *corev1.Pod
		enabled string
		servers multus.Attachment
		phase   string // of the workload, as Longhorn has it
		past    string // when Longhorn saw the last workload
		after   time.Duration
		stays   bool
		want    []string
	}{
		"a running workload, by Longhorn": {
			user: user(), enabled: "false", phase: "Running", stays: true, after: inUseRetry,
			want: []string{"Warning OutOfLine: " + wrong + waits + "pod default/web-7 does"},
		},
		"a past workload, by Longhorn": {
			user: user(), enabled: "false", phase: "Running", past: "2026-01-01T11:00:00Z", want: []string{replaced + wrong + unused},
		},
		"no workload has started": {
			phase: "Pending",
			user:  user(), enabled: "false", want: []string{replaced + wrong + unused},
		},
		"a workload has started": {
			user: user(sandbox("True"), ran), enabled: "false", stays: true, after: inUseRetry,
			want: []string{"Warning OutOfLine: " + wrong + waits + "pod default/web-0 does"},
		},
		"volumes are mounted in CSI plugin pods": {user: user(), enabled: "true", stays: true},
		"servers have not left the network":      {user: user(), enabled: "false", servers: netOne, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(asksFor(netOne.String())), test.user)
			for setting, value := range map[catalog.Name]string{catalog.StorageNetwork: "kube-system/one", catalog.StorageNetworkForRWX: test.enabled} {
				f.Must(f.Create(t.Context(), objects.LonghornSetting(setting, value)))
			}
			change(f, "v", func(v *longhorn.Volume) {
				v.Status.KubernetesStatus = longhorn.KubernetesStatus{
					Namespace: "default", LastPodRefAt: test.past,
					WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-6", PodStatus: "Pending"}, {PodName: "web-7", PodStatus: test.phase}},
				}
			})
			change(f, longhorn.Name, func(r *v1alpha1.NetworkRollout) { r.Status.Servers.Network = test.servers.String() })
			f.r.repairs["v"] = repair{times: 3}
			after := f.reconcile()
			if tried := f.r.repairs["v"].times; after != test.after || len(test.want) > 0 && tried < 3 {
				t.Errorf("again after %v, want %v; tried %d times", after, test.after, tried)
			}
			gone := f.service() == nil
			must.Check(t, gone != test.stays && (f.serverUID() == "") != test.stays, "Service gone: %v, server pod %q", gone, f.serverUID())
			must.Check(t, slices.Equal(f.Events.Notes(), test.want), "got events %q, want %q", f.Events.Notes(), test.want)
		})
	}
}

// Longhorn creates a Service only together with the server pod: a controller that
// ended between the two deletions must delete the pod when it is back.
// Source: longhorn-manager v1.7.2 controller/share_manager_controller.go createShareManagerPod.
func TestServerWithoutServiceIsRestarted(t *testing.T) {
	const wrong = "server pod share-manager-v has no Service"
	for name, test := range map[string]struct {
		user  *corev1.Pod
		stays bool
		want  []string
	}{
		"no workload has started": {
			user: user(), want: []string{"Normal Repaired: server pod share-manager-v was restarted, so that Longhorn creates the Service with it: " + wrong + unused},
		},
		"a workload has started": {
			user: user(sandbox("True"), ran), stays: true,
			want: []string{"Warning OutOfLine: " + wrong + "; server pod share-manager-v is restarted when no started workload uses the volume: pod default/web-0 does"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(), test.user)
			f.Must(f.Delete(t.Context(), f.service()))
			f.reconcile()
			must.Check(t, (f.serverUID() != "") == test.stays, "server pod %q", f.serverUID())
			must.Check(t, slices.Equal(f.Events.Notes(), test.want), "got events %q, want %q", f.Events.Notes(), test.want)
		})
	}
}

func TestServerOnNetworkIsLeftBehindClusterIP(t *testing.T) {
	f := newFixture(t, server(asksFor(netOne.String())), user())
	change(f, "v", func(s *corev1.Service) { s.Annotations, s.Spec.ClusterIP = nil, "10.43.0.7" })
	f.reconcile()
	must.Check(t, f.serverUID() != "", "restarted, though clients reach the server by the cluster IP: %q", f.Events.Notes())
}

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestWhatIsNotDoneIsTold creates server pods that can't, or must not, get
// their network: they are created as they are, with the reason as a warning.
func TestWhatIsNotDoneIsTold(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	c.set(own, "endpoint-network-for-rwx-volume", netA)
	c.waitApplied(netA + "@lhnet2")
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
		merged string
	}{
		{name: "host network", change: func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			want: "fairlead: left as it is, on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet2"},
		{name: "opt-out", change: func(p *corev1.Pod) { p.Annotations = map[string]string{storage.OptOutAnnotation: "true"} },
			want: "fairlead: left as it is, opted out: annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet2 off"},
		// The profile's own interface is Fairlead's to decide: Longhorn builds pods by a value that may not be applied.
		{name: "replaced", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{storage.NetworksAnnotation: "kube-system/backup-net@lhnet2"}
		}, merged: `[{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}]`},
		{name: "short form merged", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{storage.NetworksAnnotation: "kube-system/backup-net@net7"}
		}, merged: "kube-system/backup-net@net7,kube-system/storage-net@lhnet2"},
		{name: "JSON merged", change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{storage.NetworksAnnotation: `[{"name":"backup-net","namespace":"kube-system","mac":"02:00:00:00:00:01"}]`}
		}, merged: `[{"name":"backup-net","namespace":"kube-system","mac":"02:00:00:00:00:01"}, {"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{Sandbox: c.Sandbox, t: t}
			pod := serverPod("pvc-" + strings.ReplaceAll(strings.ToLower(test.name), " ", "-"))
			test.change(pod)
			before := pod.Annotations[storage.NetworksAnnotation]
			warnings := c.createWithWarnings(pod)
			want := test.merged
			if test.want != "" {
				want = before
				if !slices.Contains(warnings, test.want) { // said again where the API server asks again
					t.Errorf("told %q, want %q", warnings, test.want)
				}
			}
			if got := pod.Annotations[storage.NetworksAnnotation]; got != want {
				t.Errorf("asks for %s, want %s", got, want)
			}
		})
	}
}

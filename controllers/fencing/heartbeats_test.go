package fencing

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// renew the Lease of node-1, as its kubelet does.
func (w *world) renew(lease *coordinationv1.Lease) {
	w.Helper()
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.Clock.Now()))
	w.Must(w.Update(w.Context(), lease))
}

// The volume was detached by force while no node controller ran, and the Node stays Ready. Its old container may write for as long
// as its kubelet is not in touch with the API server.
func TestVolumeIsHeldUntilTheKubeletWasInTouch(t *testing.T) {
	for name, c := range map[string]struct {
		renews bool
		held   bool
	}{"it renews its Lease": {true, false}, "it is silent": {false, true}} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "node-1"}}
			w := newWorld(t, lease).look().lose("node-1").look().detach("pvc-a", "node-1").recover().look()
			w.mustBe(v1alpha1.NodeHealthy, fence.ReasonStillMounted).mustWithhold("pvc-a")
			for range 18 {
				if w.mustWithhold("pvc-a").mustWait(time.Second, 5*time.Minute).Clock.Step(20 * time.Second); c.renews {
					w.renew(lease)
				}
				w.Must(w.r.readLeasesOnce(w.Context()))
				w.look()
			}
			if c.held {
				w.mustWithhold("pvc-a")
			} else {
				w.mustWithhold().mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
			}
		})
	}
}

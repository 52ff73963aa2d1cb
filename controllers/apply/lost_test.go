package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// lose node-2, with the instance manager on it.
func (w *world) lose() {
	w.Helper()
	pod := w.pod("im-node-2")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.Must(w.API.Status().Update(w.Context(), pod))
	node := &corev1.Node{}
	node.Name = "node-2"
	w.Must(w.API.Get(w.Context(), client.ObjectKeyFromObject(node), node))
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	w.Must(w.API.Status().Update(w.Context(), node))
}

// A pod on a lost node is built right and not Ready: no change waits for it, but
// Longhorn's RWX settings were told nothing until the node was back.
func TestLostNodeDelaysNoRWXSetting(t *testing.T) {
	const rwx = catalog.StorageNetworkForRWX
	for name, test := range map[string]struct {
		network string
		told    bool
	}{
		"its pod is built with the storage network":         {"", true},
		"its pod is not yet: a sync may delete pods in use": {"kube-system/one", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(catalog.StorageNetwork, ""), setting(rwx, "false"))
			w.comeToRest()
			w.lose()
			w.setSystem(catalog.StorageNetwork, test.network)
			w.setSystem(rwx, "true")
			for range 5 {
				w.step()
			}
			if applied := w.system(rwx).Status.Applied; applied != test.told {
				t.Errorf("applied %t; %+v", applied, w.status(catalog.StorageNetwork))
			}
		})
	}
}

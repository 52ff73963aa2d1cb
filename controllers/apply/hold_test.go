package apply

import (
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Longhorn would delete a Service with a cluster IP under its mounts: canCleanupService
// of longhorn-manager v1.12.0.
func TestAppliedIsHeldWhileServicesHaveClusterIPs(t *testing.T) {
	const name = catalog.EndpointNetworkForRWX
	network := "kube-system/storage-net@lhnet2"
	w := newWorld(t, setting(name, ""), setting(catalog.StorageNetwork, ""))
	w.comeToRest()
	rollout := get[v1alpha1.NetworkRollout](w, profile.Name)
	rollout.Status.Recorded, rollout.Status.Clients.Network = true, network
	w.Must(w.API.Status().Update(t.Context(), rollout))
	w.setSystemOpen(name, "kube-system/storage-net")
	w.wrote = nil
	w.comeToRest()
	once := []string{"status longhorn.Setting/" + string(name)}
	if got := w.wroteToLonghorn(); !slices.Equal(got, once) || w.system(name).Status.Applied {
		t.Fatalf("while clients are on their way: wrote %q, applied %v", got, w.system(name).Status.Applied)
	}
	// Without the webhook Longhorn turns it true again: the two do not write in turns.
	s := w.system(name)
	s.Status.Applied = true
	w.Must(w.API.Status().Update(t.Context(), s))
	w.comeToRest()
	if got := w.wroteToLonghorn(); !slices.Equal(got, once) {
		t.Fatalf("wrote in turns: %q", got)
	}
}

// Fairlead has just been installed beside a Longhorn whose network is applied.
func TestAppliedIsNotHeldBeforeNetworkIsRecorded(t *testing.T) {
	const name = catalog.EndpointNetworkForRWX
	w := newWorld(t, setting(name, ""), setting(catalog.StorageNetwork, ""))
	rollout := get[v1alpha1.NetworkRollout](w, profile.Name)
	rollout.Status.Recorded = false
	w.Must(w.API.Status().Update(t.Context(), rollout))
	w.comeToRest()
	w.setSystemOpen(name, "kube-system/storage-net")
	s := w.system(name)
	s.Status.Applied = true
	w.Must(w.API.Status().Update(t.Context(), s))
	w.wrote = nil
	w.comeToRest()
	if got := w.wroteToLonghorn(); len(got) > 0 || !w.system(name).Status.Applied {
		t.Fatalf("wrote %q, applied %v", got, w.system(name).Status.Applied)
	}
}

package apply

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const missingNetwork = "there is no NetworkAttachmentDefinition kube-system/one"

// changingNetwork is a world whose storage network has just changed to a network that does not exist.
func changingNetwork(t *testing.T) *world {
	t.Helper()
	w := atRest(t, setting(catalog.StorageNetwork, ""))
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	return w
}

// wantNetworkBlocker wants one blocker of the storage network, whose message contains a text.
func (w *world) wantNetworkBlocker(text string) {
	w.Helper()
	s := w.status(catalog.StorageNetwork)
	must.True(w, !s.Applied && len(s.Blockers) == 1 && strings.Contains(s.Blockers[0].Message, text), "got %+v, want a blocker %q", s, text)
}

func TestDeletedPriorityClassIsWaitedFor(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	w := changing(t)
	w.remove(high)
	w.comeToRest()
	w.Must(w.builtWith(""))
	s := w.status(class)
	must.True(t, !s.Applied && len(s.Blockers) == 1 && s.Blockers[0].Kind == "PriorityClass" && s.Blockers[0].Name == "high", "got %+v", s)
	w.create(high)
	w.comeToRest()
	w.wantEnd("high")
}

// network is the NetworkAttachmentDefinition that changingNetwork asks for.
func network() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(reads.NetworkKind)
	o.SetNamespace("kube-system")
	o.SetName("one")
	return o
}

func TestDeletedNetworkIsWaitedFor(t *testing.T) {
	w := changingNetwork(t)
	pod := w.pod("im-node-1").UID
	for range 5 {
		result := w.step()
		must.True(t, result.RequeueAfter > 0, "the networks are not listed again")
	}
	w.wantNetworkBlocker(missingNetwork)
	must.True(t, w.pod("im-node-1").UID == pod, "the instance manager is restarted")
	w.meanwhile = func() { w.remove(network()) } // before the live look
	w.create(network())
	w.step()
	must.True(t, w.pod("im-node-1").UID == pod, "the instance manager is restarted on a network that is gone")
	w.create(network())
	w.step()
	now := w.pod("im-node-1")
	must.True(t, now == nil || now.UID != pod, "the network exists: %+v", w.status(catalog.StorageNetwork))
}

// Regression: a kind that is deleted while the controller runs is not found instead of no match, and each look failed.
func TestMultusMayBeRemoved(t *testing.T) {
	w := changingNetwork(t)
	w.networksFail = apierrors.NewNotFound(schema.GroupResource{Group: reads.NetworkKind.Group, Resource: "network-attachment-definitions"}, "")
	w.step()
	w.wantNetworkBlocker(missingNetwork)
	w.networksFail = errDown
	w.Pass(statusEvery)
	w.step()
	w.wantNetworkBlocker("cannot be listed")
}

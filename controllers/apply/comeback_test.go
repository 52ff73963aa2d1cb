package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// A class that is deleted while a change waits, for days maybe.
func TestDeletedPriorityClassIsWaitedFor(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	w.Must(w.API.Delete(t.Context(), high))
	w.setSystem(class, "high")
	w.comeToRest()
	if w.pod("im-node-1").Spec.PriorityClassName != "" || w.deployment().Spec.Template.Spec.PriorityClassName != "" {
		t.Fatalf("brought in line with a class that is gone: %q", w.wrote)
	}
	s := w.status(class)
	if s.Applied || len(s.Blockers) != 1 || s.Blockers[0].Kind != "PriorityClass" || s.Blockers[0].Name != "high" {
		t.Fatalf("got %+v", s)
	}
	high.ResourceVersion = ""
	w.Must(w.API.Create(t.Context(), high))
	w.comeToRest()
	w.Must(w.allOf("high"))
}

// The networks are read live, and looked for again.
func TestDeletedNetworkIsWaitedFor(t *testing.T) {
	w := newWorld(t, setting(catalog.StorageNetwork, ""))
	w.comeToRest()
	pod := w.pod("im-node-1").UID
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	for range 5 {
		if result := w.step(); result.RequeueAfter <= 0 {
			t.Fatal("nothing looks for the network again")
		}
	}
	s := w.status(catalog.StorageNetwork)
	if w.pod("im-node-1").UID != pod || s.Applied || len(s.Blockers) != 1 || !strings.Contains(s.Blockers[0].Message, "there is no NetworkAttachmentDefinition kube-system/one") {
		t.Fatalf("got %+v", s)
	}
	var network unstructured.Unstructured
	network.SetGroupVersionKind(cluster.NetworkKind)
	network.SetNamespace("kube-system")
	network.SetName("one")
	w.Must(w.API.Create(t.Context(), &network))
	w.Clock.SetTime(w.Clock.Now().Add(networksKeptFor))
	w.step()
	if now := w.pod("im-node-1"); now != nil && now.UID == pod {
		t.Fatalf("the network is there: %+v", w.status(catalog.StorageNetwork))
	}
}

// Regression: they were listed at each look, of which volumes that come and go
// bring many, for as long as a change waits.
func TestNetworksAreListedSeldomForReports(t *testing.T) {
	w := newWorld(t, setting(catalog.StorageNetwork, ""))
	w.comeToRest()
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	w.step()
	w.networkLists = 0
	for range 100 { // 30 seconds
		w.Clock.SetTime(w.Clock.Now().Add(300 * time.Millisecond))
		w.step()
	}
	if most := int(30 * time.Second / networksKeptFor); w.networkLists == 0 || w.networkLists > most {
		t.Errorf("%d lists, of at most %d", w.networkLists, most)
	}

	// What is done is decided on a list of now, whatever was kept.
	pod := w.pod("im-node-1").UID
	w.r.networks = keptNetworks{map[storage.Network]bool{{Namespace: "kube-system", Name: "one"}: true}, w.Clock.Now()}
	for range 3 {
		w.step()
	}
	if now := w.pod("im-node-1"); now == nil || now.UID != pod {
		t.Error("a pod is restarted on a network that is gone")
	}
}

// Regression: a kind that is deleted while the controller runs is not found, in
// place of no match, and each look ended in an error.
func TestMultusMayBeRemoved(t *testing.T) {
	w := newWorld(t, setting(catalog.StorageNetwork, ""))
	w.comeToRest()
	w.networksFail = apierrors.NewNotFound(schema.GroupResource{Group: cluster.NetworkKind.Group, Resource: "network-attachment-definitions"}, "")
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	w.step()
	if s := w.status(catalog.StorageNetwork); len(s.Blockers) != 1 || !strings.Contains(s.Blockers[0].Message, "there is no NetworkAttachmentDefinition kube-system/one") {
		t.Errorf("got %+v", s)
	}
	w.networksFail = errDied
	w.Clock.SetTime(w.Clock.Now().Add(networksKeptFor))
	w.step()
	if s := w.status(catalog.StorageNetwork); s.Applied || len(s.Blockers) != 1 || !strings.Contains(s.Blockers[0].Message, "cannot be listed") {
		t.Errorf("while networks can't be listed: %+v", s)
	}
}

// Regression: a list of networks that failed stopped all settings, and left them
// reported as they were, applied.
func TestFailingListOfNetworksStopsNoOtherSetting(t *testing.T) {
	w := newWorld(t, setting(catalog.StorageNetwork, ""), setting(catalog.TaintToleration, ""))
	w.comeToRest()
	w.networksFail = errDied
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	w.goOn()
	if s := w.status(catalog.StorageNetwork); s.Applied || s.EffectiveValue != "kube-system/one" {
		t.Errorf("the one that needs it: %+v", s)
	}
	if d := w.deployment(); !slices.ContainsFunc(d.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "a" }) {
		t.Error("the other one is not applied to templates")
	}
}

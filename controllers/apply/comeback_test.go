package apply

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
)

// A class that is deleted while a change waits, for days maybe.
func TestRegressionAClassThatIsGoneWhenItsTurnComesIsWaitedFor(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	w.must(w.store.Delete(t.Context(), high))
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
	w.must(w.store.Create(t.Context(), high))
	w.comeToRest()
	w.must(w.allOf("high"))
}

// The networks are read live, and looked for again.
func TestRegressionANetworkThatIsGoneWhenItsTurnComesIsWaitedFor(t *testing.T) {
	w := newWorld(t, setting(settings.StorageNetwork, ""))
	w.comeToRest()
	pod := w.pod("im-node-1").UID
	w.setSystem(settings.StorageNetwork, "kube-system/one")
	for range 5 {
		if result := w.step(); result.RequeueAfter <= 0 {
			t.Fatal("nothing looks for the network again")
		}
	}
	s := w.status(settings.StorageNetwork)
	if w.pod("im-node-1").UID != pod || s.Applied || len(s.Blockers) != 1 || !strings.Contains(s.Blockers[0].Message, "there is no NetworkAttachmentDefinition kube-system/one") {
		t.Fatalf("got %+v", s)
	}
	var network unstructured.Unstructured
	network.SetGroupVersionKind(cluster.NetworkKind)
	network.SetNamespace("kube-system")
	network.SetName("one")
	w.must(w.store.Create(t.Context(), &network))
	w.step()
	if now := w.pod("im-node-1"); now != nil && now.UID == pod {
		t.Fatalf("the network is there: %+v", w.status(settings.StorageNetwork))
	}
}

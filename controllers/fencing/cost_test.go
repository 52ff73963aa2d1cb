package fencing

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// countLiveLists counts the lists of live reads.
func (w *world) countLiveLists() *int {
	lists, live := new(int), w.API.Client()
	live.Reading = func(o runtime.Object) error {
		if meta.IsListType(o) {
			*lists++
		}
		return nil
	}
	w.reads(w.Client, live)
	return lists
}

func TestUnchangedAddressWakesNoReconcile(t *testing.T) {
	w := newWorld(t).look()
	was := w.record("node-1")
	w.pass(fence.RefreshEvery + time.Minute).look()
	is := w.record("node-1")
	if was.ResourceVersion == is.ResourceVersion || kit.FenceRecordChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
		t.Errorf("%+v passes after %+v", is, was)
	}
	for what, change := range map[string]func(*v1alpha1.NodeFence){
		"override": func(n *v1alpha1.NodeFence) { n.Annotations = map[string]string{"a": "b"} },
		"deletion": func(n *v1alpha1.NodeFence) { n.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
		"address":  func(n *v1alpha1.NodeFence) { n.Status.Identities[0].Addresses[0].CIDR = "192.168.1.9/32" },
		"volume":   func(n *v1alpha1.NodeFence) { n.Status.Volumes = nil },
	} {
		changed := is.DeepCopy()
		change(changed)
		must.True(t, kit.FenceRecordChanged().Update(event.UpdateEvent{ObjectOld: is, ObjectNew: changed}), "%s does not pass", what)
	}
	must.True(t, !is.Status.Identities[0].Addresses[0].LastSeen.IsZero(), "the cache's object was changed")
}

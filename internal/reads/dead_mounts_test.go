package reads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Deleting a pod as told must not have its healthy successor reported, also while Fairlead is down.
func TestDeadMountsOfReplacedPodsAreLeftOut(t *testing.T) {
	object := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: objects.Longhorn.Namespace, Name: longhorn.Name}}
	for _, pod := range []string{"there", "replaced", "gone"} {
		object.Status.DeadMounts = append(object.Status.DeadMounts, v1alpha1.DeadMount{Pod: "default/" + pod, UID: "old", Node: "node-1", Volumes: []string{"v"}})
	}
	pod := func(name string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
	}
	dead, err := readerOver(t, object, pod("there", "old"), pod("replaced", "new")).deadMounts(t.Context())
	must.Do(t, err)
	must.Equal(t, dead, []rwx.DeadMount{{Pod: "default/there", UID: "old", Node: "node-1", Volumes: []string{"v"}}})
	dead, err = readerOver(t).deadMounts(t.Context())
	must.True(t, err == nil && dead == nil, "got %v, %v", dead, err)
}

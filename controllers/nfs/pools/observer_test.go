package pools

import (
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// An informer that has missed a deletion shows the next object of the name as an update.
func TestHandlersForgetWhatIsGone(t *testing.T) {
	attachment := func(uid types.UID) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va", UID: uid}}
	}
	for name, c := range map[string]struct {
		event func(toolscache.ResourceEventHandler)
		want  []string
	}{
		"added":     {func(h toolscache.ResourceEventHandler) { h.OnAdd(attachment("1"), false) }, []string{"observe 1"}},
		"changed":   {func(h toolscache.ResourceEventHandler) { h.OnUpdate(attachment("1"), attachment("1")) }, []string{"observe 1"}},
		"recreated": {func(h toolscache.ResourceEventHandler) { h.OnUpdate(attachment("1"), attachment("2")) }, []string{"forget 1", "observe 2"}},
		"deleted":   {func(h toolscache.ResourceEventHandler) { h.OnDelete(attachment("1")) }, []string{"forget 1"}},
		"deleted while unwatched": {func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "va", Obj: attachment("1")})
		}, []string{"forget 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			note := func(what string) func(*storagev1.VolumeAttachment) {
				return func(va *storagev1.VolumeAttachment) { got = append(got, what+" "+string(va.UID)) }
			}
			c.event(handlers(note("observe"), note("forget")))
			must.True(t, slices.Equal(got, c.want), "got %v, want %v", got, c.want)
		})
	}
}

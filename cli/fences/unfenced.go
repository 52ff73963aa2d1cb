package fences

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/advice"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// nameUnfenced names the volumes that the out-of-service taint would detach from lost nodes without a fence, where the next
// command sets the taint. If the attachments can't be listed, the precondition stays as general as it is.
func nameUnfenced(ctx context.Context, live *lists.Live, views []View) {
	fenced := map[string]bool{}            // drivers that are on record
	others := map[string]volumesByDriver{} // of the nodes to taint
	for _, v := range views {
		for _, a := range v.Addresses {
			fenced[a.Driver] = true
		}
		for _, h := range v.Volumes {
			fenced[h.Driver] = true
		}
		if v.suggestsTaint() {
			others[v.Node] = volumesByDriver{}
		}
	}
	if len(others) == 0 {
		return
	}
	err := lists.ForEach(ctx, live, &storagev1.VolumeAttachmentList{}, func(a *storagev1.VolumeAttachment) {
		name, on := a.Spec.Source.PersistentVolumeName, others[a.Spec.NodeName]
		if on != nil && name != nil && !fenced[a.Spec.Attacher] {
			on[a.Spec.Attacher] = append(on[a.Spec.Attacher], *name)
		}
	})
	if err != nil {
		return
	}
	for i := range views {
		if v := &views[i]; v.suggestsTaint() {
			v.OnlyIf = strings.TrimSuffix(v.OnlyIf, advice.AlsoUnfenced) + others[v.Node].clause()
		}
	}
}

func (v View) suggestsTaint() bool { return strings.HasSuffix(v.OnlyIf, advice.AlsoUnfenced) }

type volumesByDriver map[string][]string

func (v volumesByDriver) clause() string {
	var texts []string
	for _, driver := range slices.Sorted(maps.Keys(v)) {
		slices.Sort(v[driver])
		texts = append(texts, fmt.Sprintf("%s of %s", fence.Few(v[driver]), driver))
	}
	if len(texts) == 0 {
		return ""
	}
	return ", also those that nothing fences: " + strings.Join(texts, "; ")
}

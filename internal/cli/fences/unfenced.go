package fences

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/advice"
)

// nameUnfenced names the volumes that the out-of-service taint would detach from lost nodes without a fence, where a next
// command sets the taint. Without the right to list attachments, the precondition stays as general as it is.
func nameUnfenced(ctx context.Context, live *lists.Live, views []View) error {
	if !slices.ContainsFunc(views, View.suggestsTaint) {
		return nil
	}
	byNode := map[string][]*storagev1.VolumeAttachment{}
	err := lists.ForEach(ctx, live, &storagev1.VolumeAttachmentList{}, func(a *storagev1.VolumeAttachment) {
		byNode[a.Spec.NodeName] = append(byNode[a.Spec.NodeName], a)
	})
	if apierrors.IsForbidden(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	for i := range views {
		if v := &views[i]; v.suggestsTaint() {
			v.OnlyIf = strings.TrimSuffix(v.OnlyIf, advice.AlsoUnfenced) + v.unfenced(byNode[v.Node])
		}
	}
	return nil
}

func (v View) suggestsTaint() bool { return strings.HasSuffix(v.OnlyIf, advice.AlsoUnfenced) }

// unfenced names the attached volumes of drivers that nothing fences; "" if there are none.
func (v View) unfenced(attached []*storagev1.VolumeAttachment) string {
	fenced := map[string]bool{}
	for _, a := range v.Addresses {
		fenced[a.Driver] = true
	}
	for _, h := range v.Volumes {
		fenced[h.Driver] = true
	}
	others := map[string][]string{}
	for _, a := range attached {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && !fenced[a.Spec.Attacher] {
			others[a.Spec.Attacher] = append(others[a.Spec.Attacher], *name)
		}
	}
	var texts []string
	for _, driver := range slices.Sorted(maps.Keys(others)) {
		slices.Sort(others[driver])
		texts = append(texts, fmt.Sprintf("%s of %s", fence.Few(others[driver]), driver))
	}
	if len(texts) == 0 {
		return ""
	}
	return ", also those that nothing fences: " + strings.Join(texts, "; ")
}

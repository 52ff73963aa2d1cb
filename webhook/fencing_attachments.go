package webhook

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/mutators"
)

var attachmentKinds = []metav1.GroupVersionKind{{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"}}

func attachmentMarks() rule[mutators.Attachment] {
	return rule[mutators.Attachment]{
		name:  entryAttachmentMarks,
		kinds: attachmentKinds,
		decide: func(_ context.Context, r *Request[mutators.Attachment]) (Decision, error) {
			return fromMutation(mutators.MarkAttachment(*r.Object)), nil
		},
	}
}

// attachment is what is read of a new VolumeAttachment.
type attachment struct {
	Spec struct {
		Attacher string `json:"attacher"`
		NodeName string `json:"nodeName"`
		Source   struct {
			PersistentVolumeName string `json:"persistentVolumeName"`
			// InlineVolumeSpec stands for the volume where it has no PersistentVolume:
			// one of a pod's own, of a kind that was moved to CSI.
			InlineVolumeSpec *struct {
				AccessModes []string `json:"accessModes"`
				VolumeMode  string   `json:"volumeMode"`
				CSI         *struct {
					Driver           string            `json:"driver"`
					VolumeHandle     string            `json:"volumeHandle"`
					VolumeAttributes map[string]string `json:"volumeAttributes"`
				} `json:"csi"`
			} `json:"inlineVolumeSpec"`
		} `json:"source"`
	} `json:"spec"`
}

// attachments refuses to attach a volume while a lost node that holds or held it
// is not fenced. It is the gate: the old attachment's deletion is never refused.
//
// Objects: new VolumeAttachments of protected drivers.
func (f *Fencing) attachments() rule[attachment] {
	return rule[attachment]{
		name:  entryAttachments,
		kinds: attachmentKinds,
		decide: func(ctx context.Context, r *Request[attachment]) (Decision, error) {
			if !f.protects(r.Object.Spec.Attacher) {
				return allowed(reasonNotProtected), nil
			}
			volume, err := f.volumeOf(ctx, r.Object)
			if err != nil {
				return cannotJudge(err), nil
			}
			if volume == nil {
				path := field.NewPath("spec", "source", "persistentVolumeName")
				return forbidden(r.Resource, r.Name, path, "no such volume", fmt.Sprintf("there is no PersistentVolume %q, so nobody can tell who holds it", r.Object.Spec.Source.PersistentVolumeName)), nil
			}
			held, err := f.held(ctx, *volume, r.Object.Spec.NodeName)
			reason := reasonNotHeld
			if err == nil && held != nil && held.Soon && !r.DryRun {
				if held, err = f.await(ctx, *volume, r.Object.Spec.NodeName, held); held == nil {
					reason = "fenced meanwhile"
				}
			}
			switch {
			case err != nil:
				return cannotJudge(err), nil
			case held != nil:
				return forbidden(r.Resource, r.Name, field.NewPath("spec", "nodeName"), held.Reason, held.Message), nil
			}
			return allowed(reason), nil
		},
	}
}

// volumeOf the attachment; nil where there is no such PersistentVolume. It is of
// the driver that attaches it, also where it was made for an older kind.
func (f *Fencing) volumeOf(ctx context.Context, a *attachment) (*fence.Volume, error) {
	volume := &fence.Volume{}
	if inline := a.Spec.Source.InlineVolumeSpec; a.Spec.Source.PersistentVolumeName == "" && inline != nil {
		volume.AccessModes, volume.Block = inline.AccessModes, inline.VolumeMode == string(corev1.PersistentVolumeBlock)
		if csi := inline.CSI; csi != nil {
			volume.Driver, volume.Handle, volume.Attributes = csi.Driver, csi.VolumeHandle, csi.VolumeAttributes
			volume.Name, volume.ClusterID = csi.VolumeHandle, csi.VolumeAttributes["clusterID"]
		}
	} else {
		var err error
		if volume, err = f.Live.Volume(ctx, a.Spec.Source.PersistentVolumeName); err != nil || volume == nil {
			return nil, err
		}
	}
	volume.Driver = a.Spec.Attacher
	return volume, nil
}

// held by whom and why; nil if it may be attached.
func (f *Fencing) held(ctx context.Context, v fence.Volume, node string) (*fence.Held, error) {
	if v.ReadOnly() {
		return nil, nil
	}
	holders, err := f.Live.Holders(ctx, v)
	if err != nil {
		return nil, err
	}
	return fence.Attach(v, node, holders, f.Policy()), nil
}

// How long a request waits for a fence that is on its way, and how often it
// looks. Each refusal has Kubernetes wait twice as long as after the one before,
// up to two minutes, so an answer a moment later is better than a refusal now.
const (
	maxWait    = 7 * time.Second
	waitMargin = time.Second
	lookEvery  = 200 * time.Millisecond
)

// await waits until a volume is held no more, as long as somebody is about to see to that.
func (f *Fencing) await(ctx context.Context, v fence.Volume, node string, held *fence.Held) (*fence.Held, error) {
	select {
	case f.waits <- struct{}{}:
		defer func() { <-f.waits }()
	default:
		return held, nil
	}
	until := time.Now().Add(maxWait)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-waitMargin).Before(until) {
		until = deadline.Add(-waitMargin)
	}
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for !f.Draining() {
		select {
		case <-waiting.Done():
			return held, nil
		case <-ticker.C:
		}
		// Only the node that it is held by is looked at, until that has something new to say.
		holders, err := f.Live.HoldersOf(waiting, v, held.Node)
		if err != nil {
			continue // what was last read still holds
		}
		if now := fence.Attach(v, node, holders, f.Policy()); now != nil && now.Soon {
			held = now
			continue
		}
		now, err := f.held(ctx, v, node)
		if err != nil || now == nil || !now.Soon {
			return now, err
		}
		held = now
	}
	return held, nil
}

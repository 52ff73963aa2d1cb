package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

var attachmentKinds = []metav1.GroupVersionKind{{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"}}

func attachmentMarks() admission.Rule[mutators.Attachment] {
	return admission.Rule[mutators.Attachment]{
		Kinds: attachmentKinds,
		Decide: func(_ context.Context, r *admission.Request[mutators.Attachment]) (admission.Decision, error) {
			return admission.FromMutation(mutators.MarkAttachment(*r.Object)), nil
		},
	}
}

// attachment is the view of a new VolumeAttachment.
type attachment struct {
	Spec struct {
		Attacher string `json:"attacher"`
		NodeName string `json:"nodeName"`
		Source   struct {
			PersistentVolumeName string `json:"persistentVolumeName"`
			// InlineVolumeSpec replaces the PersistentVolume for a pod's own volume of a kind that was moved to CSI.
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

// attachments refuses to attach a volume while the lost node that had it is not fenced. Only new attachments are refused:
// the old attachment can always be deleted.
//
// Objects: new VolumeAttachments of protected drivers.
func (f *Fencing) attachments() admission.Rule[attachment] {
	return admission.Rule[attachment]{
		Kinds: attachmentKinds,
		Decide: func(ctx context.Context, r *admission.Request[attachment]) (admission.Decision, error) {
			if !f.protects(r.Object.Spec.Attacher) {
				return admission.Allowed(reasonNotProtected), nil
			}
			volume, err := f.volumeOf(ctx, r.Object)
			if err != nil {
				return admission.CannotJudge(err), nil
			}
			if volume == nil {
				path := field.NewPath("spec", "source", "persistentVolumeName")
				return admission.Forbidden(r.Resource, r.Name, path, "no such volume", fmt.Sprintf("there is no PersistentVolume %q: Fairlead can't tell which node has the volume; create the PersistentVolume first", r.Object.Spec.Source.PersistentVolumeName)), nil
			}
			held, err := f.held(ctx, *volume, r.Object.Spec.NodeName)
			reason := reasonNotHeld
			if err == nil && held != nil && held.Soon && !r.DryRun {
				if held, err = f.await(ctx, *volume, r.Object.Spec.NodeName, held); held == nil {
					reason = "fenced while waiting"
				}
			}
			switch {
			case err != nil:
				return admission.CannotJudge(err), nil
			case held != nil:
				return admission.Forbidden(r.Resource, r.Name, field.NewPath("spec", "nodeName"), held.Reason, held.Message), nil
			}
			return admission.Allowed(reason), nil
		},
	}
}

// volumeOf an attachment; nil if the PersistentVolume does not exist. The driver is the attachment's: a volume of an
// older kind names another.
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

// held is the node that holds a volume, and why; nil if the volume may be attached.
func (f *Fencing) held(ctx context.Context, v fence.Volume, node string) (*fence.Held, error) {
	if v.ReadOnly() {
		return nil, nil
	}
	holders, err := f.Live.Holders(ctx, v)
	if err != nil {
		return nil, err
	}
	itself, err := f.Live.HoldersOf(ctx, v, node)
	if err != nil {
		return nil, err
	}
	holders = append(holders, slices.DeleteFunc(itself, func(h fence.Holder) bool { return !h.Node.Exists })...)
	return fence.Attach(v, node, holders, f.Policy()), nil
}

// How long a request waits for a fence in progress, and how often it reads. After each refusal Kubernetes doubles its
// delay, up to two minutes, so a late answer is better than a refusal.
const (
	maxWait    = 7 * time.Second
	waitMargin = time.Second
	pollEvery  = 200 * time.Millisecond
)

// await waits until a volume is no longer held, while its fence is in progress.
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
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !f.Draining() {
		select {
		case <-waiting.Done():
			return held, nil
		case <-ticker.C:
		}
		// Until the holder changes, only the holder is read.
		holders, err := f.Live.HoldersOf(waiting, v, held.Node)
		if err != nil {
			continue // the last read still counts
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

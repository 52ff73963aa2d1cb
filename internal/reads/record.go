package reads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// RolloutKey is the namespace and name of the record.
func RolloutKey(names longhorn.Names) client.ObjectKey {
	return client.ObjectKey{Namespace: names.Namespace, Name: longhorn.Name}
}

// ErrNotRecorded is returned until the controller has recorded the network of the cluster.
var ErrNotRecorded = errors.New("the network for RWX volumes is not recorded yet")

// ErrMalformedRecord is returned for a record that can't be read.
var ErrMalformedRecord = errors.New("the network record can't be read")

// IgnoreNoRecord ignores a missing and an unreadable record, for readers that have other work: the record
// that comes with the error is unknown, and says why.
func IgnoreNoRecord(err error) error {
	if errors.Is(err, ErrNotRecorded) || errors.Is(err, ErrMalformedRecord) {
		return nil
	}
	return err
}

// Record reads the network record.
func (r *Reader) Record(ctx context.Context) (rollout.Record, error) {
	object, err := r.RolloutObject(ctx)
	if apierrors.IsNotFound(err) {
		return rollout.Record{Unknown: true}, ErrNotRecorded
	}
	if err != nil {
		return rollout.Record{}, err
	}
	return RecordOf(object)
}

// RolloutObject reads the object of the record, to change it.
func (r *Reader) RolloutObject(ctx context.Context) (*v1alpha1.NetworkRollout, error) {
	var object v1alpha1.NetworkRollout
	if err := r.objects.Get(ctx, RolloutKey(r.names), &object); err != nil {
		return nil, fmt.Errorf("reading the network record: %w", err)
	}
	return &object, nil
}

// RecordOf parses the record of a NetworkRollout.
func RecordOf(object *v1alpha1.NetworkRollout) (rollout.Record, error) {
	status := &object.Status
	if !status.Recorded {
		return rollout.Record{Unknown: true}, ErrNotRecorded
	}
	mounts := MountingOf(object).Place
	record := rollout.Record{MountsInClients: mounts != "" && mounts != rwx.InHost}
	for _, part := range []struct {
		field string
		read  func() error
	}{
		{"clients.network", func() (err error) { record.Clients, err = multus.ParseAttachment(status.Clients.Network); return }},
		{"servers.network", func() (err error) { record.Servers, err = multus.ParseAttachment(status.Servers.Network); return }},
		{"clients.volumeNetworks", func() (err error) { record.VolumeClients, err = attachmentsOf(status.Clients.VolumeNetworks); return }},
		{"servers.volumeNetworks", func() (err error) { record.VolumeServers, err = attachmentsOf(status.Servers.VolumeNetworks); return }},
		{"replacing", func() (err error) { record.Replacing, err = nameOf(status.Replacing); return }},
	} {
		if err := part.read(); err != nil {
			err = fmt.Errorf("%w: status.%s of NetworkRollout %s: %w; correct it (kubectl -n %s edit networkrollouts %s --subresource=status)",
				ErrMalformedRecord, part.field, object.Name, err, object.Namespace, object.Name)
			return rollout.Record{Unknown: true, Problem: err.Error()}, err
		}
	}
	for _, refused := range status.Refused {
		record.Refused = append(record.Refused, rollout.Refusal{Kind: catalog.BlockerKind(refused.Kind), Name: refused.Name, Message: refused.Message})
	}
	if since := status.Servers.Since; since != nil {
		record.ServersSince = since.Time
	}
	return record, nil
}

// nameOf is the name of an object that is kept as JSON.
func nameOf(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var object metav1.PartialObjectMetadata
	err := json.Unmarshal([]byte(text), &object)
	return object.Name, err
}

func attachmentsOf(texts []string) ([]multus.Attachment, error) {
	var attachments []multus.Attachment
	for _, text := range texts {
		a, err := multus.ParseAttachment(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		attachments = append(attachments, a)
	}
	return multus.InOrder(attachments), nil
}

// MountingOf reads from the NetworkRollout where clients mount volumes.
func MountingOf(rollout *v1alpha1.NetworkRollout) rwx.Mounting {
	m := rollout.Status.Clients.Mounts
	if m == nil {
		return rwx.Mounting{}
	}
	mounting := rwx.Mounting{Place: rwx.MountPlace(m.Place), Since: m.Since.Time, Before: rwx.MountPlace(m.Before)}
	if m.BeforeSince != nil {
		mounting.BeforeSince = m.BeforeSince.Time
	}
	return mounting
}

// SetMounting writes into the NetworkRollout where clients mount volumes.
func SetMounting(rollout *v1alpha1.NetworkRollout, m rwx.Mounting) {
	rollout.Status.Clients.Mounts = &v1alpha1.ClientMounts{
		Place: string(m.Place), Since: metav1.NewMicroTime(m.Since), Before: string(m.Before),
	}
	if !m.BeforeSince.IsZero() {
		rollout.Status.Clients.Mounts.BeforeSince = ptr.To(metav1.NewMicroTime(m.BeforeSince))
	}
}

// Blockers are the first of them, in the form of the API.
func Blockers(blockers []catalog.Blocker) []v1alpha1.Blocker {
	var list []v1alpha1.Blocker
	for _, b := range blockers[:min(len(blockers), v1alpha1.MaxListed)] {
		list = append(list, v1alpha1.Blocker{Kind: string(b.Kind), Name: b.Name, Nodes: b.Nodes, Workloads: b.Workloads, Owners: b.Owners, Message: b.Message})
	}
	return list
}

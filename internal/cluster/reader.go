package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Reader gathers facts on one profile.
type Reader struct {
	profile storage.Profile
	objects client.Reader
	// provisioned may be a cache even where objects is live: what gates read of a
	// PersistentVolume (driver, handle, access modes) never changes, and no gate
	// goes by what annotations ask for.
	provisioned client.Reader
	// announces: see Announcing.
	announces bool
	// clients and servers are what was read of pods: parsed once for each version of a pod.
	clients *readings[storage.Client]
	// servers is nil where pods are read live, which is once.
	servers *readings[storage.Server]
}

// NewReader returns a reader over a cache or, for decisions that deny or
// disrupt, over the API server.
func NewReader(profile storage.Profile, objects, provisioned client.Reader) *Reader {
	r := &Reader{profile: profile, objects: objects, provisioned: provisioned, clients: newReadings[storage.Client]()}
	if _, live := objects.(*lists.Live); !live {
		r.servers = newReadings[storage.Server]()
	}
	return r
}

// Announcing is the same reader for telling what a change will do. What runs in
// instance managers is what they report: engines and replicas, which name an
// instance a moment earlier, are big and are not read. Nor are facts of servers.
func (r *Reader) Announcing() *Reader {
	announcing := *r
	announcing.announces = true
	return &announcing
}

// Turn waits until few others read many objects, where memory is short. The
// turn is over when the returned function is called.
func (r *Reader) Turn(ctx context.Context) (end func(), _ error) {
	if live, ok := r.objects.(*lists.Live); ok {
		return live.Turn(ctx)
	}
	return func() {}, nil
}

// RolloutKey is where the record of a profile is kept.
func RolloutKey(p storage.Profile) client.ObjectKey {
	return client.ObjectKey{Namespace: p.Namespace, Name: p.Name}
}

// ErrNotRecorded is returned while the controller has not yet written down what
// the cluster runs.
var ErrNotRecorded = errors.New("the network of this profile is not recorded yet")

// Record reads the record of the two halves.
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

// RolloutObject reads the object of the record, for changing it.
func (r *Reader) RolloutObject(ctx context.Context) (*v1alpha1.NetworkRollout, error) {
	var object v1alpha1.NetworkRollout
	if err := r.objects.Get(ctx, RolloutKey(r.profile), &object); err != nil {
		return nil, fmt.Errorf("reading the network record: %w", err)
	}
	return &object, nil
}

// RecordOf reads the record out of its object.
func RecordOf(object *v1alpha1.NetworkRollout) (rollout.Record, error) {
	if !object.Status.Recorded {
		return rollout.Record{Unknown: true}, ErrNotRecorded
	}
	clients, err := storage.ParseAttachment(object.Status.Clients.Network)
	if err != nil {
		return rollout.Record{}, fmt.Errorf("status.clients.network of NetworkRollout %s: %w", object.Name, err)
	}
	servers, err := storage.ParseAttachment(object.Status.Servers.Network)
	if err != nil {
		return rollout.Record{}, fmt.Errorf("status.servers.network of NetworkRollout %s: %w", object.Name, err)
	}
	mounts := MountingOf(object).Place
	record := rollout.Record{Clients: clients, Servers: servers, MountsInClients: mounts != "" && mounts != storage.InHost}
	if record.VolumeClients, err = attachmentsOf(object.Status.Clients.VolumeNetworks); err != nil {
		return rollout.Record{}, fmt.Errorf("status.clients.volumeNetworks of NetworkRollout %s: %w", object.Name, err)
	}
	if record.VolumeServers, err = attachmentsOf(object.Status.Servers.VolumeNetworks); err != nil {
		return rollout.Record{}, fmt.Errorf("status.servers.volumeNetworks of NetworkRollout %s: %w", object.Name, err)
	}
	if since := object.Status.Servers.Since; since != nil {
		record.ServersSince = since.Time
	}
	return record, nil
}

func attachmentsOf(texts []string) ([]storage.Attachment, error) {
	var attachments []storage.Attachment
	for _, text := range texts {
		a, err := storage.ParseAttachment(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		attachments = append(attachments, a)
	}
	return storage.InOrder(attachments), nil
}

// Values reads the settings, Fairlead's own and the storage system's apart.
// A storage system without settings, or not installed, has none.
func (r *Reader) Values(ctx context.Context) (own, system map[catalog.Name]string, err error) {
	own, system = map[catalog.Name]string{}, map[catalog.Name]string{}
	var ours v1alpha1.SettingList
	if err := r.objects.List(ctx, &ours, client.InNamespace(r.profile.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("listing settings.fairlead.io: %w", err)
	}
	for i := range ours.Items {
		if value := ours.Items[i].Value; value != nil {
			own[catalog.Name(ours.Items[i].Name)] = *value
		}
	}
	var theirs longhorn.SettingList
	if err := r.objects.List(ctx, &theirs, client.InNamespace(r.profile.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("listing settings.longhorn.io: %w", err)
	}
	for i := range theirs.Items {
		system[catalog.Name(theirs.Items[i].Name)] = theirs.Items[i].Value
	}
	return own, system, nil
}

// NetworkKind is the kind that Multus reads networks from.
var NetworkKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// Networks lists the NetworkAttachmentDefinitions of the cluster by name.
func (r *Reader) Networks(ctx context.Context) ([]storage.Network, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(NetworkKind.GroupVersion().WithKind(NetworkKind.Kind + "List"))
	if err := r.objects.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing NetworkAttachmentDefinitions: %w", err)
	}
	networks := make([]storage.Network, 0, len(list.Items))
	for i := range list.Items {
		networks = append(networks, storage.Network{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
	}
	return networks, nil
}

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// Requests are what annotations ask for RWX volumes of the profile. Those of other
// volumes have no effect: no server pod serves them over NFS.
type Requests struct {
	// ByVolume has every RWX volume that Kubernetes knows.
	ByVolume map[string]storage.Request
	// ClassOf names the StorageClass of a volume.
	ClassOf map[string]string
	// Unbound claims that ask, as namespace/name: of which driver their volume will be is open.
	Unbound map[string]storage.Request
	// Classes of the profile's driver, and the networks that they name.
	Classes map[string]storage.Network
	// Contested are those whose identity another volume has: it is asked for by nobody.
	Contested []Contested
}

// Requests gathers what annotations ask for.
func (r *Reader) Requests(ctx context.Context) (Requests, error) {
	all := Requests{
		ByVolume: map[string]storage.Request{}, ClassOf: map[string]string{},
		Unbound: map[string]storage.Request{}, Classes: map[string]storage.Network{},
	}
	classes, err := r.classes(ctx)
	if err != nil {
		return all, err
	}
	for name, source := range classes {
		if request := storage.Resolve(storage.RequestSource{}, storage.RequestSource{}, source); !request.Network.IsZero() {
			all.Classes[name] = request.Network
		}
	}
	claims, err := r.claims(ctx)
	if err != nil {
		return all, err
	}
	var volumes corev1.PersistentVolumeList
	if err := r.provisioned.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		return all, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		claim := claims.of(pv)
		delete(claims, claim.Namespace+"/"+claim.Name)
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != r.profile.Driver || !slimVolume(pv).shared {
			continue
		}
		request := storage.Resolve(claim.RequestSource, volumeSource(pv), classes[pv.Spec.StorageClassName])
		// Several PersistentVolumes may stand for one volume: one that asks counts.
		if handle := pv.Spec.CSI.VolumeHandle; all.ByVolume[handle] == (storage.Request{}) {
			all.ByVolume[handle], all.ClassOf[handle] = request, pv.Spec.StorageClassName
		}
	}
	for key, claim := range claims {
		if storage.AsksForNetwork(claim.Annotations) {
			all.Unbound[key] = storage.Resolve(claim.RequestSource, storage.RequestSource{}, storage.RequestSource{})
		}
	}
	return all, r.contest(ctx, &all)
}

// AddRequests adds to the facts what annotations ask for.
func (r *Reader) AddRequests(ctx context.Context, facts *settings.Rollout) error {
	requests, err := r.Requests(ctx)
	if err != nil {
		return err
	}
	for i := range facts.Volumes {
		facts.Volumes[i].Request = requests.ByVolume[facts.Volumes[i].Name]
	}
	for _, n := range requests.Classes {
		facts.ClassNetworks = append(facts.ClassNetworks, n)
	}
	return nil
}

// classes are the StorageClasses of the driver, by name.
func (r *Reader) classes(ctx context.Context) (map[string]storage.RequestSource, error) {
	var list storagev1.StorageClassList
	if err := r.provisioned.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	byName := map[string]storage.RequestSource{}
	for i := range list.Items {
		if list.Items[i].Provisioner == r.profile.Driver {
			byName[list.Items[i].Name] = classSource(&list.Items[i])
		}
	}
	return byName, nil
}

// claimsByName has claims by namespace/name.
type claimsByName map[string]boundClaim

type boundClaim struct {
	storage.RequestSource
	uid string
}

func (r *Reader) claims(ctx context.Context) (claimsByName, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(storage.ClaimKind + "List"))
	if err := r.provisioned.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PersistentVolumeClaims: %w", err)
	}
	byName := claimsByName{}
	for i := range list.Items {
		byName[list.Items[i].Namespace+"/"+list.Items[i].Name] = claimOf(&list.Items[i])
	}
	return byName, nil
}

// of is the claim that the PersistentVolume is bound to; one that has come after
// it, by the same name, is another.
func (c claimsByName) of(pv *corev1.PersistentVolume) boundClaim {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return boundClaim{}
	}
	claim := c[ref.Namespace+"/"+ref.Name]
	if ref.UID != "" && string(ref.UID) != claim.uid {
		return boundClaim{}
	}
	return claim
}

func claimOf(o *metav1.PartialObjectMetadata) boundClaim {
	source := storage.RequestSource{Kind: storage.ClaimKind, Namespace: o.Namespace, Name: o.Name, Annotations: o.Annotations, UID: string(o.UID), Created: o.CreationTimestamp.Time}
	return boundClaim{source, source.UID}
}

func volumeSource(pv *corev1.PersistentVolume) storage.RequestSource {
	return storage.RequestSource{Kind: storage.VolumeKind, Name: pv.Name, Annotations: pv.Annotations, UID: string(pv.UID), Created: pv.CreationTimestamp.Time}
}

func classSource(c *storagev1.StorageClass) storage.RequestSource {
	return storage.RequestSource{Kind: storage.ClassKind, Name: c.Name, Annotations: c.Annotations}
}

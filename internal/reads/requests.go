package reads

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Requests are the networks and identities that annotations request for RWX volumes of
// Longhorn. Annotations of other volumes have no effect: no server pod serves them.
type Requests struct {
	// ByVolume has the requests of RWX volumes, by volume.
	ByVolume map[string]rwx.Request
	// ClassOf has the StorageClass of each RWX volume with a PersistentVolume.
	ClassOf map[string]string
	// Unbound has the requests of unbound claims, by namespace/name. Their driver is not known yet.
	Unbound map[string]rwx.Request
	// Classes has the networks that StorageClasses of Longhorn's driver name.
	Classes map[string]multus.Network
	// Contested says, by object, which identity another volume has. The identity is dropped from the request.
	Contested map[rwx.Asker]string
}

// Requests gathers the requests of all annotations.
func (r *Reader) Requests(ctx context.Context) (Requests, error) {
	all := Requests{
		ByVolume: map[string]rwx.Request{}, ClassOf: map[string]string{},
		Unbound: map[string]rwx.Request{}, Classes: map[string]multus.Network{},
	}
	classes, err := r.classes(ctx)
	if err != nil {
		return all, err
	}
	for name, source := range classes {
		if request := rwx.Resolve(r.names.VolumeNetworks, rwx.RequestSource{}, rwx.RequestSource{}, source); !request.Network.IsZero() {
			all.Classes[name] = request.Network
		}
	}
	claims, err := r.claims(ctx)
	if err != nil {
		return all, err
	}
	err = lists.ForEach(ctx, r.provisioned, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		claim := claims.of(pv)
		delete(claims, claim.Namespace+"/"+claim.Name)
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != r.names.Driver || !slimVolume(pv).shared {
			return
		}
		// Several PersistentVolumes may have the same volume handle: the first with a request counts.
		handle := pv.Spec.CSI.VolumeHandle
		if _, asks := all.ByVolume[handle]; asks {
			return
		}
		all.ClassOf[handle] = pv.Spec.StorageClassName
		if request := rwx.Resolve(r.names.VolumeNetworks, claim, SourceOf(rwx.VolumeKind, pv), classes[pv.Spec.StorageClassName]); request != (rwx.Request{}) {
			all.ByVolume[handle] = request
		}
	})
	if err != nil {
		return all, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	for key, claim := range claims {
		all.Unbound[key] = rwx.Resolve(r.names.VolumeNetworks, claim, rwx.RequestSource{}, rwx.RequestSource{})
	}
	return all, r.contest(ctx, &all)
}

// addRequests adds the requests of annotations to the facts.
func (r *Reader) addRequests(ctx context.Context, facts *rollout.Rollout) error {
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
func (r *Reader) classes(ctx context.Context) (map[string]rwx.RequestSource, error) {
	byName := map[string]rwx.RequestSource{}
	err := lists.ForEach(ctx, r.provisioned, &storagev1.StorageClassList{}, func(class *storagev1.StorageClass) {
		if class.Provisioner == r.names.Driver {
			byName[class.Name] = SourceOf(rwx.ClassKind, class)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	return byName, nil
}

// claimsByName has the claims with a request, by namespace/name.
type claimsByName map[string]rwx.RequestSource

func (r *Reader) claims(ctx context.Context) (claimsByName, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(rwx.ClaimKind + "List"))
	byName := claimsByName{}
	err := lists.ForEach(ctx, r.provisioned, &list, func(o *metav1.PartialObjectMetadata) {
		if rwx.AsksForNetwork(o.Annotations) {
			byName[o.Namespace+"/"+o.Name] = SourceOf(rwx.ClaimKind, o)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PersistentVolumeClaims: %w", err)
	}
	return byName, nil
}

// of returns the claim that the PersistentVolume is bound to. A newer claim of the
// same name has another UID and does not count.
func (c claimsByName) of(pv *corev1.PersistentVolume) rwx.RequestSource {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return rwx.RequestSource{}
	}
	claim := c[ref.Namespace+"/"+ref.Name]
	if ref.UID != "" && string(ref.UID) != claim.UID {
		return rwx.RequestSource{}
	}
	return claim
}

// SourceOf is an object that may have a request for a volume.
func SourceOf(kind string, o metav1.Object) rwx.RequestSource {
	return rwx.RequestSource{
		Asker:       rwx.Asker{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), Since: o.GetCreationTimestamp().Time},
		Annotations: o.GetAnnotations(),
	}
}

// contest drops identities that another volume has, and reports them as problems: the volume stays on its
// network with another address. The webhook refuses duplicates, but two may be admitted at the same moment,
// or while no webhook answers.
func (r *Reader) contest(ctx context.Context, all *Requests) error {
	if len(all.Claimants(rollout.Record{}, nil)) == 0 {
		return nil
	}
	record, err := r.Record(ctx)
	if IgnoreNoRecord(err) != nil {
		return err
	}
	services, err := r.Services(ctx)
	if err != nil {
		return err
	}
	claimants := all.Claimants(record, services)
	all.Contested = map[rwx.Asker]string{}
	for i, problem := range rwx.Contest(claimants) {
		if problem == "" || claimants[i].Holds {
			continue
		}
		volume, requests := claimants[i].Volume, all.ByVolume
		if _, bound := requests[volume]; !bound {
			requests = all.Unbound
		}
		q := requests[volume]
		q.Identity, q.Problem = multus.Identity{}, fmt.Sprintf("%s: %s", q.Asker, problem)
		requests[volume] = q
		all.Contested[q.Asker] = problem
	}
	return nil
}

// Claimants are the requests for an identity, and the Services that record one. The volume of an unbound claim is the
// claim, by namespace/name.
func (all Requests) Claimants(record rollout.Record, services []rwx.Service) []rwx.Claimant {
	var claimants []rwx.Claimant
	claim := func(volume string, q rwx.Request) {
		network := q.Network
		if network.IsZero() {
			network = record.Servers.Network
		}
		if !q.Identity.IsZero() {
			claimants = append(claimants, rwx.Claimant{Volume: volume, Network: network, Identity: q.Identity, Since: q.Asker.Since})
		}
	}
	for _, v := range slices.Sorted(maps.Keys(all.ByVolume)) {
		claim(v, all.ByVolume[v])
	}
	for _, c := range slices.Sorted(maps.Keys(all.Unbound)) {
		claim(c, all.Unbound[c])
	}
	return append(claimants, holders(services)...)
}

// holders returns a claimant for each Service with a recorded identity.
func holders(services []rwx.Service) []rwx.Claimant {
	var claimants []rwx.Claimant
	for _, s := range services {
		if s.Recorded.IsZero() || s.Identity.IsZero() {
			continue
		}
		claimants = append(claimants, rwx.Claimant{
			Volume: s.Volume, Network: s.Recorded.Network, Identity: s.Identity, Holds: true, Since: s.Created,
		})
	}
	return claimants
}

// dropContested drops the Service's identity if an older Service has it: no server
// pod may start with the same identity.
func (r *Reader) dropContested(ctx context.Context, service *rwx.Service) error {
	if service.Identity.IsZero() {
		return nil
	}
	services, err := r.Services(ctx)
	if err != nil {
		return err
	}
	claimants := holders(services)
	problems := rwx.Contest(claimants)
	for i, c := range claimants {
		if c.Volume == service.Volume && problems[i] != "" {
			service.Identity = multus.Identity{}
		}
	}
	return nil
}

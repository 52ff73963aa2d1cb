package reads

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// SliceName is the name of a Service's slice of one family.
func SliceName(service string, family discoveryv1.AddressType) string {
	if family == discoveryv1.AddressTypeIPv6 {
		return service + "-fairlead-ipv6"
	}
	return service + "-fairlead-ipv4"
}

// PublishedIn returns the addresses in a slice.
func PublishedIn(s *discoveryv1.EndpointSlice) (published []netip.Addr) {
	for _, e := range s.Endpoints {
		for _, text := range e.Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				published = append(published, address)
			}
		}
	}
	return published
}

// MovesOf returns the moves that a slice of Fairlead's has; zero if there is no record of them. A record that lacks a published address
// is of before another party wrote the slice, and counts for nothing.
func MovesOf(s *discoveryv1.EndpointSlice) rwx.Moves {
	moves, err := rwx.ParseMoves(s.Annotations[rwx.MovesAnnotation])
	published := PublishedIn(s)
	unknown := func(a netip.Addr) bool { return !slices.Contains(moves.Addresses, a) }
	if err != nil || slices.ContainsFunc(published, unknown) {
		return rwx.Moves{}
	}
	return moves
}

// PodsUsing a volume, by UID. live reads from the API server.
func (r *Reader) PodsUsing(ctx context.Context, live client.Reader, volume string) (map[string]rwx.Run, error) {
	claims := map[string][]string{} // by namespace
	err := lists.ForEach(ctx, r.provisioned, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		if claim := pv.Spec.ClaimRef; claim != nil && r.isOf(pv, volume) {
			claims[claim.Namespace] = append(claims[claim.Namespace], claim.Name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the PersistentVolumes of volume %s: %w", volume, err)
	}
	runs := map[string]rwx.Run{}
	for namespace, names := range claims {
		var unread []error
		err := lists.ForEach(ctx, lists.NewLive(live), &corev1.PodList{}, func(pod *corev1.Pod) {
			uses := slices.ContainsFunc(Claims(pod), func(claim string) bool { return slices.Contains(names, claim) })
			if uses && pod.Spec.NodeName != "" && !Ended(pod) {
				run, err := r.run(ctx, pod)
				runs[string(pod.UID)], unread = run, append(unread, err)
			}
		}, client.InNamespace(namespace))
		if err := errors.Join(append(unread, err)...); err != nil {
			return nil, fmt.Errorf("listing the pods in %s, which may use volume %s: %w", namespace, volume, err)
		}
	}
	return runs, nil
}

// run identifies a pod's sandbox or, where the status does not show that, its containers.
func (r *Reader) run(ctx context.Context, pod *corev1.Pod) (rwx.Run, error) {
	boot, err := r.BootID(ctx, pod.Spec.NodeName)
	if mounted(pod).IsZero() {
		return rwx.Run{Boot: boot}, err
	}
	digest := fnv.New64a()
	if made := condition(pod, corev1.PodReadyToStartContainers); made != nil {
		_, _ = fmt.Fprintln(digest, made.LastTransitionTime.UTC())
		return rwx.Run{Boot: boot, Containers: strconv.FormatUint(digest.Sum64(), 16)}, err
	}
	for _, c := range containers(pod) {
		_, _ = fmt.Fprintln(digest, c.Name, c.RestartCount, c.ContainerID)
	}
	return rwx.Run{Boot: boot, Containers: strconv.FormatUint(digest.Sum64(), 16)}, err
}

// IsLeftBehind reports whether a server of a workload's volumes has moved, as the API server has it now: a stale slice may show a server
// elsewhere that is back.
func (r *Reader) IsLeftBehind(ctx context.Context, live client.Reader, pod *corev1.Pod, w rwx.Workload) (bool, error) {
	for _, m := range w.Mounts {
		if m.ServerMove.IsZero() || m.ServerMove.Unsure {
			continue
		}
		if move, err := r.serverMove(ctx, live, m.Volume, pod); err != nil || !move.IsZero() && !move.Unsure {
			return err == nil, err
		}
	}
	return false, nil
}

// serverMove is the move of a volume's server that a pod did not follow.
func (r *Reader) serverMove(ctx context.Context, from client.Reader, volume string, pod *corev1.Pod) (rwx.ServerMove, error) {
	var families []rwx.Family
	left := false
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		var s discoveryv1.EndpointSlice
		err := from.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: SliceName(volume, family)}, &s)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return rwx.ServerMove{}, fmt.Errorf("reading the addresses of volume %s: %w", volume, err)
		}
		moves := MovesOf(&s)
		families, left = append(families, rwx.Family{Published: PublishedIn(&s), Moves: moves}), left || len(moves.Left) > 0
	}
	if !left {
		return rwx.ServerMove{}, nil
	}
	run, err := r.run(ctx, pod)
	if err != nil {
		return rwx.ServerMove{}, err
	}
	return rwx.MovedAway(families, string(pod.UID), run), nil
}

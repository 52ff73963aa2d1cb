package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// freePodIPs finds addresses that no pod of the node has.
func (s *Sandbox) freePodIPs(ctx context.Context, nodeName string) ([]corev1.PodIP, error) {
	var node corev1.Node
	if err := s.Client.Get(ctx, client.ObjectKey{Name: nodeName}, &node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", nodeName, err)
	}
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": nodeName}); err != nil {
		return nil, fmt.Errorf("listing the pods on %s: %w", nodeName, err)
	}
	taken := map[string]bool{}
	for _, pod := range pods.Items {
		for _, ip := range pod.Status.PodIPs {
			taken[ip.IP] = true
		}
	}
	return pickPodIPs(node.Spec.PodCIDRs, taken)
}

var errNoPodIP = errors.New("no pod address is left")

// pickPodIPs takes the same last byte of every range, from its end: kwok gives
// new pods addresses from the beginning, and is not asked.
func pickPodIPs(cidrs []string, taken map[string]bool) ([]corev1.PodIP, error) {
	for last := byte(254); last > 0; last-- {
		ips := make([]corev1.PodIP, 0, len(cidrs))
		for _, cidr := range cidrs {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return nil, fmt.Errorf("reading pod range %q: %w", cidr, err)
			}
			bytes := prefix.Addr().AsSlice()
			bytes[len(bytes)-1] = last
			if address, ok := netip.AddrFromSlice(bytes); ok && !taken[address.String()] {
				ips = append(ips, corev1.PodIP{IP: address.String()})
			}
		}
		if len(ips) == len(cidrs) {
			return ips, nil
		}
	}
	return nil, errNoPodIP
}

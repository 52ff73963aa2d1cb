package reads

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// addressField is the index of pods by what Multus reports of them.
const addressField = "fairlead.io/address"

func addressKey(network, ip string) string { return network + " " + ip }

// IndexAddresses adds to a cache the index that FindClashes needs.
func IndexAddresses(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, addressField, func(o client.Object) (keys []string) {
		if o.GetAnnotations()[multus.NetworksAnnotation] == "" {
			return nil // it has the cluster network's address alone
		}
		for _, i := range reportedBy(o.(*corev1.Pod)) {
			for _, ip := range i.IPs {
				keys = append(keys, addressKey(i.Network, ip))
			}
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("indexing pods by address: %w", err)
	}
	return nil
}

// FindClashes notes which servers report an address of another pod; see rwx.FindClashes.
func (r *Reader) FindClashes(ctx context.Context, servers []rwx.Server) error {
	all := slices.Clone(servers)
	for _, s := range servers {
		for _, i := range s.Reported {
			for _, ip := range i.IPs {
				var pods corev1.PodList
				if err := r.objects.List(ctx, &pods, client.InNamespace(r.names.Namespace), client.MatchingFields{addressField: addressKey(i.Network, ip)}, client.UnsafeDisableDeepCopy); err != nil {
					return fmt.Errorf("looking for other pods with address %s: %w", ip, err)
				}
				for p := range pods.Items {
					if !Ended(&pods.Items[p]) && !slices.ContainsFunc(all, func(s rwx.Server) bool { return s.UID == string(pods.Items[p].UID) }) {
						all = append(all, r.serverOf(&pods.Items[p]))
					}
				}
			}
		}
	}
	rwx.FindClashes(nil, all)
	copy(servers, all)
	return nil
}

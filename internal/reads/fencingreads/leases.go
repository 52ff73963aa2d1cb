package fencingreads

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// NodeLeases are the Leases of all nodes, by name, from the API server.
func NodeLeases(ctx context.Context, live client.Reader) (map[string]coordinationv1.LeaseSpec, error) {
	leases := map[string]coordinationv1.LeaseSpec{}
	take := func(l *coordinationv1.Lease) { leases[l.Name] = *l.Spec.DeepCopy() } // so that the page can be freed
	if err := lists.ForEach(ctx, lists.NewLive(live), &coordinationv1.LeaseList{}, take, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return nil, fmt.Errorf("listing the leases of nodes: %w", err)
	}
	return leases, nil
}

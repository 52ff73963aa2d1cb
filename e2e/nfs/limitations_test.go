package nfs

import "testing"

// What "Limitations of the Design" of the GKE NFS LoadBalancer CSI driver says that it
// cannot do, row by row (nfs-lb-csi-driver, README.md).
func TestLimitationsOfTheDesign(t *testing.T) {
	for _, row := range []struct {
		limitation string
		gone       func(*testing.T)
	}{
		{"identify which server has become unavailable", deadServerIsIdentified},
		{"add and remove servers without reinstalling", serversChangeLive},
		{"stay balanced when many nodes are removed", manyNodesRemoved},
		{"serve different server clusters", severalServerClusters},
		{"distribute evenly beyond one Kubernetes cluster", twoClustersOnTheSameServers},
		{"mount more than a single share", severalShares},
	} {
		t.Run(row.limitation, row.gone)
	}
}

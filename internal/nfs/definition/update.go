package definition

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// CheckUpdate reports a change of the port while a node has the service mounted through a ClusterIP: the mounts keep it. The
// schema does the same by the status, which may be late, and refuses another exposure.
func CheckUpdate(old, updated *v1alpha1.NFSService, mounted bool) nfs.Problems {
	var problems nfs.Problems
	if from, to := PortOf(old), PortOf(updated); from != to && mounted && exposureOf(old) != nfs.PerNode {
		problems.Add("spec.port", "nodes have mounted port %d of the service's ClusterIPs: leave the port, or unmount all volumes of the service first", from)
	}
	return problems
}

// UpdateWarnings describes the effect of an update on clients. Backends have effects with PerNode only: other exposures point
// their addresses to other backends, and publish the ports of NFSv3.
func UpdateWarnings(old, updated *v1alpha1.NFSService) []string {
	if exposureOf(updated) != nfs.PerNode {
		was, _ := Read(old)
		is, _ := Read(updated)
		if from, to := was.PublishedMountPort(), is.PublishedMountPort(); from != 0 && to == 0 {
			return []string{fmt.Sprintf("the Services of the NFSService no longer publish mountd (port %d): volumes with vers=3 can't be mounted any more; keep 3 in spec.versions, and spec.health.mountPort", from)}
		}
		return nil
	}
	after := map[netip.AddrPort]nfs.Backend{}
	service, _ := Read(updated)
	for _, b := range service.Backends {
		after[b.Addr] = b
	}
	var warnings []string
	for _, b := range old.Status.Backends {
		addr, err := netip.ParseAddrPort(b.Address)
		if err != nil || b.Nodes == 0 || b.Source != string(nfs.Static) {
			continue
		}
		switch now, ok := after[addr]; {
		case !ok:
			warnings = append(warnings, fmt.Sprintf("backend %s is removed and mounted by %s: the mounts stay until the volumes are detached; run: fairlead nfs %s/%s", addr, count(b.Nodes), updated.Namespace, updated.Name))
		case now.Drain && !b.Drain:
			warnings = append(warnings, fmt.Sprintf("backend %s drains and is mounted by %s: the mounts stay until the volumes are detached; run: fairlead nfs %s/%s", addr, count(b.Nodes), updated.Namespace, updated.Name))
		}
	}
	return warnings
}

func count(nodes int32) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

func exposureOf(s *v1alpha1.NFSService) nfs.Exposure {
	return nfs.Exposure(cmp.Or(s.Spec.Exposure, string(nfs.PerNodeStable)))
}

// PortOf is the port that clients mount.
func PortOf(s *v1alpha1.NFSService) int32 { return cmp.Or(s.Spec.Port, nfs.DefaultPort) }

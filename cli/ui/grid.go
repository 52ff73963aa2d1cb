package ui

import (
	"maps"
	"slices"

	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// grid shows which node has which network: of its CSI plugin pod, and of the servers on it.
type grid struct {
	Networks []string
	Rows     []gridRow
	// Hidden nodes are beyond the first ones.
	Hidden int
}

type gridRow struct {
	Node  string
	Cells []gridCell
}

// gridCell is one node on one network.
type gridCell struct {
	Network string
	// Color is the number of the network.
	Color int
	// Client: the CSI plugin pod is on the network. Servers is the number of servers.
	Client  bool
	Servers int
}

// mostNodes is the number of nodes in a grid.
const mostNodes = 50

// gridOf the data paths: nodes without RWX volumes are not in it.
func gridOf(paths []datapath.Path) grid {
	type place struct{ node, network string }
	clients, servers, nodes, networks := map[place]bool{}, map[place]map[string]bool{}, map[string]bool{}, map[string]bool{"": true}
	for _, p := range paths {
		for _, h := range p.Hops {
			at := place{h.Node, h.Network}
			switch {
			case h.Node == "":
				continue
			case h.Kind == datapath.Client:
				clients[at] = true
			case h.Kind == datapath.Server:
				if servers[at] == nil {
					servers[at] = map[string]bool{}
				}
				servers[at][h.Name] = true
			default:
				continue
			}
			nodes[h.Node], networks[h.Network] = true, true
		}
	}
	g := grid{}
	ordered := slices.Sorted(maps.Keys(networks))
	for _, network := range ordered {
		g.Networks = append(g.Networks, status.NetworkName(network))
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		row := gridRow{Node: node}
		for i, network := range ordered {
			at := place{node, network}
			row.Cells = append(row.Cells, gridCell{g.Networks[i], min(i, colors-1), clients[at], len(servers[at])})
		}
		g.Rows = append(g.Rows, row)
	}
	g.Hidden = max(0, len(g.Rows)-mostNodes)
	g.Rows = g.Rows[:len(g.Rows)-g.Hidden]
	return g
}

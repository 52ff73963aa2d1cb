package nfs

import (
	"cmp"
	"fmt"
	"io"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// nfsPlanView is what `fairlead nfs plan -o json` prints. Fields are added, never
// renamed or removed; lists are whole, and never null.
type nfsPlanView struct {
	Service  string `json:"service"`
	Exposure string `json:"exposure"`
	// Outcome: nothing, now or waits.
	Outcome  string           `json:"outcome"`
	Backends []nfsPlanBackend `json:"backends"`
	Slots    []nfsPlanSlot    `json:"slots"`
	Moves    []nfsPlanMove    `json:"moves"`
	// Notes name changes that need more than an edit of the NFSService's backends.
	Notes []string `json:"notes"`
}

// nfsPlanBackend is a server before and after the change.
type nfsPlanBackend struct {
	Address string `json:"address"`
	// Change: added, removed, drained, weighed, or empty.
	Change string `json:"change"`
	Health string `json:"health"`
	Weight int32  `json:"weight"`
	Drain  bool   `json:"drain"`
	// NodesNow is the number of nodes now, NodesThen the number after all moves.
	NodesNow  int `json:"nodesNow"`
	NodesThen int `json:"nodesThen"`
}

// nfsPlanSlot is a slot that is pointed to another server.
type nfsPlanSlot struct {
	Slot   int    `json:"slot"`
	From   string `json:"from"`
	To     string `json:"to"`
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// nfsPlanMove is a node that leaves its server.
type nfsPlanMove struct {
	Node   string `json:"node"`
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
	// Remount: the node moves only when its volumes are detached.
	Remount bool `json:"remount"`
	// Pending: the node has to leave with or without the change.
	Pending bool `json:"pending"`
	// How says in words how the node moves.
	How string `json:"how"`
}

func viewOfNFSPlan(service string, state *plan.State, p plan.Plan) nfsPlanView {
	v := nfsPlanView{
		Service: service, Exposure: string(state.Service.Exposure), Outcome: string(p.Outcome()),
		Backends: []nfsPlanBackend{}, Slots: []nfsPlanSlot{}, Moves: []nfsPlanMove{}, Notes: append([]string{}, p.Notes...),
	}
	for _, b := range p.Backends {
		shown := nfsPlanBackend{Address: b.Addr().String(), Change: changeOf(b), NodesNow: b.NodesNow, NodesThen: b.NodesThen}
		server := cmp.Or(b.Then, b.Now)
		shown.Health, shown.Weight, shown.Drain = server.Health.String(), server.Weight, server.Drain
		v.Backends = append(v.Backends, shown)
	}
	for _, m := range p.Slots {
		v.Slots = append(v.Slots, nfsPlanSlot{m.Slot, addrText(m.From), addrText(m.To), m.Nodes, string(m.Reason)})
	}
	for _, m := range p.Moves {
		v.Moves = append(v.Moves, nfsPlanMove{m.Node, addrText(m.From), addrText(m.To), string(m.Reason), m.Remount, m.Pending, howMoved(m)})
	}
	return v
}

func changeOf(b plan.Backend) string {
	switch {
	case b.Now == nil:
		return "added"
	case b.Then == nil:
		return "removed"
	case b.Then.Drain && !b.Now.Drain:
		return "drained"
	case b.Then.Weight != b.Now.Weight:
		return "weighed"
	}
	return ""
}

func howMoved(m plan.Move) string {
	waits := "waits: "
	if m.Pending {
		waits = "waits, with or without the change: "
	}
	switch {
	case !m.To.IsValid():
		return waits + "no server takes the node"
	case m.Remount:
		return waits + "the node must remount; delete its pods that use the volumes"
	}
	return "at once, without a remount"
}

func writeNFSPlan(out io.Writer, v nfsPlanView) error {
	t := cli.NewTable(out, "BACKEND", "CHANGE", "HEALTH", "WEIGHT", "NODES NOW", "NODES THEN")
	for _, b := range v.Backends {
		t.Row(b.Address, cli.OrDash(b.Change), b.Health, fmt.Sprint(b.Weight), fmt.Sprint(b.NodesNow), fmt.Sprint(b.NodesThen))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range v.Notes {
		cli.WriteLine(out, "Note: %s", note)
	}
	if err := writeNFSPlanSlots(out, v.Slots); err != nil {
		return err
	}
	return writeNFSPlanMoves(out, v)
}

func writeNFSPlanSlots(out io.Writer, slots []nfsPlanSlot) error {
	if len(slots) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "SLOT", "FROM", "TO", "NODES", "REASON")
	for _, s := range slots[:min(len(slots), cli.LongestList)] {
		t.Row(fmt.Sprint(s.Slot), cli.OrDash(s.From), s.To, fmt.Sprint(s.Nodes), s.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(slots))
	return nil
}

func writeNFSPlanMoves(out io.Writer, v nfsPlanView) error {
	fmt.Fprintln(out)
	if len(v.Moves) == 0 {
		fmt.Fprintln(out, "No node moves.")
		return nil
	}
	t, remounts, stranded := cli.NewTable(out, "NODE", "FROM", "TO", "REASON", "HOW"), 0, 0
	for i, m := range v.Moves {
		if m.Remount {
			remounts++
		}
		if m.To == "" {
			stranded++
		}
		if i < cli.LongestList {
			t.Row(m.Node, cli.OrDash(m.From), cli.OrDash(m.To), m.Reason, m.How)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(v.Moves))
	fmt.Fprintln(out)
	cli.WriteLine(out, "%s to move; %d must remount, %d have no server to go to", catalog.Count(len(v.Moves), "node"), remounts, stranded)
	return nil
}

package nfs

import (
	"fmt"
	"io"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func writeNFSPlan(out io.Writer, v plan.Plan) error {
	t := cli.NewTable(out, "BACKEND", "CHANGE", "HEALTH", "WEIGHT", "NODES NOW", "NODES THEN")
	for _, b := range v.Backends {
		t.Row(b.Address.String(), cli.OrDash(b.Change), b.Health, fmt.Sprint(b.Weight), fmt.Sprint(b.NodesNow), fmt.Sprint(b.NodesThen))
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

func writeNFSPlanSlots(out io.Writer, slots []assign.SlotMove) error {
	if len(slots) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "SLOT", "FROM", "TO", "NODES", "REASON")
	for _, s := range slots[:cli.Longest(out, len(slots))] {
		t.Row(fmt.Sprint(s.Slot), cli.OrDash(addrText(s.From)), addrText(s.To), fmt.Sprint(s.Nodes), string(s.Reason))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(slots))
	return nil
}

func writeNFSPlanMoves(out io.Writer, v plan.Plan) error {
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
		if !m.To.IsValid() {
			stranded++
		}
		if i < cli.Longest(out, len(v.Moves)) {
			t.Row(m.Node, cli.OrDash(addrText(m.From)), cli.OrDash(addrText(m.To)), string(m.Reason), m.How)
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

package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func writePlan(out io.Writer, view View) error {
	asked := view.Asked()
	shown := slices.DeleteFunc(slices.Clone(asked), Setting.idle)
	if err := writePlanned(out, shown); err != nil {
		return err
	}
	if len(asked) < len(view.Settings) {
		writeOthers(out, view.Settings)
	}
	if left := len(asked) - len(shown); left > 0 {
		cli.WriteLine(out, "%s hidden; -o json has all", catalog.Count(left, "default"))
	}
	if err := writeWorks(out, view.Works); err != nil {
		return err
	}
	if err := writeBlockers(out, view.Blockers, view.Namespace); err != nil {
		return err
	}
	return writeNodes(out, view.Nodes)
}

// writeNodes says in which order CSI plugin pods restart, and which node to drain next.
func writeNodes(out io.Writer, nodes []Node) error {
	if len(nodes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "NODE", "CSI PLUGIN POD", "RWX VOLUMES", "WORKLOADS")
	for _, n := range nodes[:min(len(nodes), cli.LongestList)] {
		t.Row(n.Node, n.Pod, cli.List(n.Volumes), cli.List(n.Workloads))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(nodes))
	if i := slices.IndexFunc(nodes, func(n Node) bool { return len(n.Volumes) > 0 }); i >= 0 {
		cli.WriteLine(out, "Drain next: %s", nodes[i].Node)
	}
	return nil
}

func writePlanned(out io.Writer, shown []Setting) error {
	if len(shown) == 0 {
		return nil
	}
	t := cli.NewTable(out, "SETTING", "NOW", "THEN", "APPLIES", "REASON")
	for _, s := range shown {
		t.Row(s.Name, cli.Cell(s.Now.Value), cli.Cell(s.Then.Value), s.Applies, s.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range shown {
		for _, w := range s.Warnings {
			cli.WriteLine(out, "Warning: %s: %s", s.Name, w)
		}
	}
	return nil
}

// idle: no resource sets the setting, and no work applies it.
func (s Setting) idle() bool {
	return !s.Changed && s.Then.Source == string(catalog.SourceDefault) && s.Applies == appliesDone
}

// writeOthers lists works' settings that the request does not name: settings that wait in any
// case, and settings that the changes make wait again.
func writeOthers(out io.Writer, all []Setting) {
	var open, reopened []string
	for _, s := range all {
		switch {
		case s.Changed || s.Applies == appliesDone:
		case s.appliedNow:
			reopened = append(reopened, s.Name)
		default:
			open = append(open, s.Name)
		}
	}
	if len(open) > 0 {
		fmt.Fprintln(out)
		cli.WriteLine(out, "Not applied yet, with or without the change: %s", strings.Join(open, ", "))
	}
	if len(reopened) > 0 {
		fmt.Fprintln(out)
		cli.WriteLine(out, "Applied now, and to be rolled out again after the change: %s", strings.Join(reopened, ", "))
	}
}

func writeWorks(out io.Writer, works []Work) error {
	if len(works) == 0 {
		fmt.Fprintln(out, "\nNothing is done to any component.")
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "ACTION", "COMPONENT", "NODE", "FOR SETTINGS", "WHEN")
	for _, w := range works[:min(len(works), cli.LongestList)] {
		t.Row(w.Action, w.Kind+"/"+w.Component, cli.OrDash(w.Node), strings.Join(w.Settings, ", "), w.WhenText())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(works))
	return nil
}

// WhenText says when the work is done, and what it waits for.
func (w Work) WhenText() string {
	switch {
	case w.When == whenNow:
		return "now"
	case w.When == whenTurn:
		return "in its turn: " + w.WaitsFor
	case w.WaitsFor == "":
		return "waits"
	}
	return "waits: " + w.WaitsFor
}

func writeBlockers(out io.Writer, blockers []Blocker, namespace string) error {
	if len(blockers) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "WAITED FOR", "NODES", "WORKLOADS", "BY SETTINGS", "WHAT TO DO", "NEXT")
	for _, b := range blockers[:min(len(blockers), cli.LongestList)] {
		t.Row(b.Kind+"/"+b.Name, cli.List(b.Nodes), cli.List(b.Workloads), strings.Join(b.Settings, ", "), b.Message, cli.Next(b.Blocker, namespace))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(blockers))
	return nil
}

package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func writePlan(out io.Writer, view View) {
	asked := view.Asked()
	shown := slices.DeleteFunc(slices.Clone(asked), Setting.idle)
	writePlanned(out, shown, len(asked) < len(view.Settings))
	if len(asked) < len(view.Settings) {
		writeOthers(out, view.Settings)
	}
	if left := len(asked) - len(shown); left > 0 {
		cli.WriteLine(out, "Applied: %s; \"fairlead settings\" lists them.", catalog.Count(left, "setting"))
	}
	if len(view.Works) == 0 {
		fmt.Fprintln(out, "\nNo setting restarts any component.")
	}
	if view.VolumeNetworks != "" {
		fmt.Fprintln(out)
		cli.WriteLine(out, "Note: %s", view.VolumeNetworks)
	}
	cli.WriteGroups(out, view.Works, func(w Work) []string {
		return []string{w.Action, w.Kind + "/" + w.Component, cli.OrDash(w.Node), strings.Join(w.Settings, ", "), w.WhenText()}
	}, []int{1, 2}, "ACTION", "COMPONENT", "NODE", "FOR SETTINGS", "WHEN")
	cli.WriteGroups(out, view.Blockers, func(b Blocker) []string {
		return []string{b.Kind + "/" + b.Name, cli.List(b.Nodes), cli.List(b.Workloads), strings.Join(b.Settings, ", "), b.Message, cli.Next(b.Blocker, view.Namespace)}
	}, []int{0, 2, 5}, "WAITED FOR", "NODES", "WORKLOADS", "BY SETTINGS", "WHAT TO DO", "NEXT")
	// The order in which CSI plugin pods restart, and which node to drain next.
	cli.WriteList(out, view.Nodes, func(n Node) []string {
		return []string{n.Node, n.Pod, cli.List(n.Volumes), cli.List(n.Workloads)}
	}, "NODE", "CSI PLUGIN POD", "RWX VOLUMES", "WORKLOADS")
	if i := slices.IndexFunc(view.Nodes, func(n Node) bool { return len(n.Volumes) > 0 }); i >= 0 && view.drainHelps() {
		cli.WriteLine(out, "Drain next: %s", view.Nodes[i].Node)
	}
}

// drainHelps reports whether CSI plugin pods wait for nothing but RWX volumes on their nodes.
func (v View) drainHelps() bool {
	i := slices.IndexFunc(v.Works, func(w Work) bool { return w.Action == moveAction })
	return i >= 0 && !slices.ContainsFunc(v.Blockers, func(b Blocker) bool {
		return b.Kind != string(catalog.BlockedByVolume) && slices.ContainsFunc(b.Settings, func(s string) bool { return slices.Contains(v.Works[i].Settings, s) })
	})
}

func writePlanned(out io.Writer, shown []Setting, changes bool) {
	if len(shown) == 0 {
		return
	}
	if changes {
		cli.WriteRows(out, shown, func(s Setting) []string {
			return []string{s.Name, cli.Cell(s.Now.Value), cli.Cell(s.Then.Value), s.Applies, s.Reason}
		}, "SETTING", "NOW", "THEN", "APPLIES", "REASON")
	} else {
		cli.WriteRows(out, shown, func(s Setting) []string {
			return []string{s.Name, cli.Cell(s.Then.Value), s.Applies, s.Reason}
		}, "SETTING", "VALUE", "APPLIES", "REASON")
	}
	for _, s := range shown {
		for _, w := range s.Warnings {
			cli.WriteLine(out, "Warning: %s: %s", s.Name, w)
		}
	}
}

// idle: the setting is applied, and nothing is to be said of it.
func (s Setting) idle() bool {
	return !s.Changed && s.Applies == appliesDone && len(s.Warnings) == 0
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

// WhenText says when the work is done, and what it waits for.
func (w Work) WhenText() string {
	switch {
	case w.When == whenNow && w.WaitsFor != "":
		return "now; the rest waits: " + w.WaitsFor
	case w.When == whenNow:
		return "now"
	case w.When == whenTurn:
		return "in its turn: " + w.WaitsFor
	case w.WaitsFor == "":
		return "waits"
	}
	return "waits: " + w.WaitsFor
}

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// longest is how many lines a list has in the table; JSON has all.
const longest = 20

func writePlan(out io.Writer, view planView) error {
	asked := view.asked()
	shown := slices.DeleteFunc(slices.Clone(asked), planSetting.idle)
	if err := writePlanned(out, shown); err != nil {
		return err
	}
	if len(asked) < len(view.Settings) {
		writeOthers(out, view.Settings)
	}
	if left := len(asked) - len(shown); left > 0 {
		writeLine(out, "%s not shown, which no resource sets; -o json has all", catalog.Count(left, "setting"))
	}
	if err := writeWorks(out, view.Works); err != nil {
		return err
	}
	if err := writeBlockers(out, view.Blockers); err != nil {
		return err
	}
	return writeNodes(out, view.Nodes)
}

// writeNodes says in which order CSI plugin pods restart, and which node to drain next.
func writeNodes(out io.Writer, nodes []planNode) error {
	if len(nodes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "NODE", "CSI PLUGIN POD", "RWX VOLUMES", "WORKLOADS")
	for _, n := range nodes[:min(len(nodes), longest)] {
		t.row(n.Node, n.Pod, names(n.Volumes), names(n.Workloads))
	}
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(nodes))
	if i := slices.IndexFunc(nodes, func(n planNode) bool { return len(n.Volumes) > 0 }); i >= 0 {
		writeLine(out, "Drain next: %s", nodes[i].Node)
	}
	return nil
}

func writePlanned(out io.Writer, shown []planSetting) error {
	if len(shown) == 0 {
		return nil
	}
	t := newTable(out, "SETTING", "NOW", "THEN", "APPLIES", "REASON")
	for _, s := range shown {
		t.row(s.Name, cell(s.Now.Value), cell(s.Then.Value), s.Applies, s.Reason)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, s := range shown {
		for _, w := range s.Warnings {
			writeLine(out, "Warning: %s: %s", s.Name, w)
		}
	}
	return nil
}

// idle: no resource sets it, and nothing is to be done for it.
func (s planSetting) idle() bool {
	return !s.Changed && s.Then.Source == string(catalog.SourceDefault) && s.Applies == appliesDone
}

// writeOthers names the settings that the request does not name and that works are for:
// those that wait in any case, and those that the changes put back to waiting.
func writeOthers(out io.Writer, all []planSetting) {
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
		writeLine(out, "Not applied yet, with or without the change: %s", strings.Join(open, ", "))
	}
	if len(reopened) > 0 {
		fmt.Fprintln(out)
		writeLine(out, "Applied now, and to be rolled out again after the change: %s", strings.Join(reopened, ", "))
	}
}

func writeWorks(out io.Writer, works []planWork) error {
	if len(works) == 0 {
		fmt.Fprintln(out, "\nNothing is done to any component.")
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "ACTION", "COMPONENT", "NODE", "FOR SETTINGS", "WHEN")
	for _, w := range works[:min(len(works), longest)] {
		node := w.Node
		if node == "" {
			node = "-"
		}
		t.row(w.Action, w.Kind+"/"+w.Component, node, strings.Join(w.Settings, ", "), w.whenText())
	}
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(works))
	return nil
}

func (w planWork) whenText() string {
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

func writeBlockers(out io.Writer, blockers []planBlocker) error {
	if len(blockers) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "WAITED FOR", "NODES", "WORKLOADS", "BY SETTINGS", "WHAT TO DO")
	for _, b := range blockers[:min(len(blockers), longest)] {
		t.row(b.Kind+"/"+b.Name, names(b.Nodes), names(b.Workloads), strings.Join(b.Settings, ", "), b.Message)
	}
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(blockers))
	return nil
}

func more(out io.Writer, count int) {
	if count > longest {
		writeLine(out, "and %d more; -o json has all", count-longest)
	}
}

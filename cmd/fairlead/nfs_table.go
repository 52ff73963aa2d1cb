package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// writeNFS shows all services, then the backends of each.
func writeNFS(out io.Writer, views []nfsView, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(out, "No NFSServices.")
		return nil
	}
	t := newTable(out, "SERVICE", "EXPOSURE", "READY", "ADDRESS", "BACKENDS", "HEALTHY", "SLOTS", "VOLUMES", "NODES", "MESSAGE")
	for _, v := range views {
		t.row(v.Service, v.Exposure, v.Ready, orDash(v.Address), fmt.Sprint(len(v.Backends)), fmt.Sprint(v.healthy()), countOrDash(len(v.Slots)),
			fmt.Sprint(len(v.Volumes)), fmt.Sprint(len(v.Nodes)), orDash(v.Message))
	}
	if err := t.flush(); err != nil {
		return err
	}
	t, backends := newTable(out, "SERVICE", "BACKEND", "SOURCE", "ZONE", "WEIGHT", "HEALTH", "SINCE", "NODES", "SLOTS", "LAST ERROR"), 0
	for _, v := range views {
		for _, b := range v.Backends {
			t.row(append([]string{v.Service}, b.cells(now)...)...)
			backends++
		}
	}
	if backends == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return t.flush()
}

func (v nfsView) healthy() int {
	healthy := 0
	for _, b := range v.Backends {
		if b.Health == "Healthy" {
			healthy++
		}
	}
	return healthy
}

func (b nfsBackend) cells(now time.Time) []string {
	health := orDash(b.Health)
	if b.Drain {
		health += ", draining"
	}
	return []string{b.Address, orDash(b.Source), orDash(b.Zone), fmt.Sprint(b.Weight), health, ago(b.Since, now), fmt.Sprint(b.Nodes), countOrDash(b.Slots), orDash(b.LastError)}
}

// writeNFSService shows all of one service.
func writeNFSService(out io.Writer, v nfsView, now time.Time) error {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row("Service:", v.Service)
	t.row("Exposure:", v.Exposure)
	if v.Address != "" {
		t.row("Address:", v.Address)
		t.row("Points to:", orDash(v.Backend))
	}
	for _, c := range v.Conditions {
		t.row(c.Type+":", strings.TrimSpace(c.Status+" ("+orDash(c.Reason)+") "+c.Message))
	}
	for _, p := range v.Problems {
		t.row("Problem:", p)
	}
	t.row("Volumes:", names(v.Volumes[:min(len(v.Volumes), longest)]))
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(v.Volumes))
	if err := writeNFSBackends(out, v, now); err != nil {
		return err
	}
	return writeNFSNodes(out, v)
}

func writeNFSBackends(out io.Writer, v nfsView, now time.Time) error {
	fmt.Fprintln(out)
	if len(v.Backends) == 0 {
		fmt.Fprintln(out, "No backends are recorded. Does the controller run, and has the service a source of servers?")
		return nil
	}
	t := newTable(out, "BACKEND", "SOURCE", "ZONE", "WEIGHT", "HEALTH", "SINCE", "NODES", "SLOTS", "LAST ERROR")
	for _, b := range v.Backends {
		t.row(b.cells(now)...)
	}
	if err := t.flush(); err != nil || len(v.Slots) == 0 {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out, "SLOT", "ADDRESS", "BACKEND", "NODES")
	for _, s := range v.Slots[:min(len(v.Slots), longest)] {
		t.row(fmt.Sprint(s.Slot), orDash(s.Address), orDash(s.Backend), fmt.Sprint(s.Nodes))
	}
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(v.Slots))
	return nil
}

func writeNFSNodes(out io.Writer, v nfsView) error {
	fmt.Fprintln(out)
	if len(v.Nodes) == 0 {
		fmt.Fprintln(out, "No node has a volume of the service.")
	} else {
		t := newTable(out, "NODE", "ZONE", "BACKEND", "ADDRESS", "VOLUMES", "WHY")
		for _, n := range v.Nodes {
			t.row(n.Node, orDash(n.Zone), orDash(n.Backend), n.Address, fmt.Sprint(n.Volumes), n.Why)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if len(v.Waiting) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "NODE", "VOLUME THAT WAITS FOR AN ADDRESS")
	for _, w := range v.Waiting[:min(len(v.Waiting), longest)] {
		t.row(w.Node, w.Volume)
	}
	if err := t.flush(); err != nil {
		return err
	}
	more(out, len(v.Waiting))
	return nil
}

func countOrDash(count int) string {
	if count == 0 {
		return "-"
	}
	return fmt.Sprint(count)
}

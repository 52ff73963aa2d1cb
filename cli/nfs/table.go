package nfs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/cli"
)

// writeNFS shows all services, then the backends of each.
func writeNFS(out io.Writer, views []View, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(out, "No NFSServices.")
		return nil
	}
	t := cli.NewTable(out, "SERVICE", "EXPOSURE", "READY", "ADDRESS", "BACKENDS", "HEALTHY", "SLOTS", "VOLUMES", "NODES", "MESSAGE")
	for _, v := range views {
		t.Row(v.Service, v.Exposure, v.Ready, cli.OrDash(v.Address), fmt.Sprint(len(v.Backends)), fmt.Sprint(v.Healthy()), cli.CountOrDash(len(v.Slots)),
			fmt.Sprint(len(v.Volumes)), fmt.Sprint(len(v.Nodes)), cli.OrDash(v.Message))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t, backends := cli.NewTable(out, "SERVICE", "BACKEND", "SOURCE", "ZONE", "WEIGHT", "HEALTH", "SINCE", "NODES", "SLOTS", "LAST ERROR"), 0
	for _, v := range views {
		for _, b := range v.Backends {
			t.Row(append([]string{v.Service}, b.cells(now)...)...)
			backends++
		}
	}
	if backends == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return t.Flush()
}

// Healthy backends.
func (v View) Healthy() int {
	healthy := 0
	for _, b := range v.Backends {
		if b.Health == "Healthy" {
			healthy++
		}
	}
	return healthy
}

func (b Backend) cells(now time.Time) []string {
	health := cli.OrDash(b.Health)
	if b.Drain {
		health += ", draining"
	}
	return []string{b.Address, cli.OrDash(b.Source), cli.OrDash(b.Zone), fmt.Sprint(b.Weight), health, cli.Ago(b.Since, now), fmt.Sprint(b.Nodes), cli.CountOrDash(b.Slots), cli.OrDash(b.LastError)}
}

// writeNFSService shows all facts on one service.
func writeNFSService(out io.Writer, v View, now time.Time) error {
	t := cli.NewTable(out)
	t.Row("Service:", v.Service)
	t.Row("Exposure:", v.Exposure)
	if v.Address != "" {
		t.Row("Address:", v.Address)
		t.Row("Points to:", cli.OrDash(v.Backend))
	}
	for _, c := range v.Conditions {
		t.Row(c.Type+":", strings.TrimSpace(c.Status+" ("+cli.OrDash(c.Reason)+") "+c.Message))
	}
	for _, p := range v.Problems {
		t.Row("Problem:", p)
	}
	t.Row("Volumes:", cli.List(v.Volumes[:cli.Longest(out, len(v.Volumes))]))
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(v.Volumes))
	if err := writeNFSBackends(out, v, now); err != nil {
		return err
	}
	return writeNFSNodes(out, v)
}

func writeNFSBackends(out io.Writer, v View, now time.Time) error {
	fmt.Fprintln(out)
	if len(v.Backends) == 0 {
		fmt.Fprintln(out, "No backends are recorded. Does the controller run, and has the service a source of servers?")
		return nil
	}
	t := cli.NewTable(out, "BACKEND", "SOURCE", "ZONE", "WEIGHT", "HEALTH", "SINCE", "NODES", "SLOTS", "LAST ERROR")
	for _, b := range v.Backends {
		t.Row(b.cells(now)...)
	}
	if err := t.Flush(); err != nil || len(v.Slots) == 0 {
		return err
	}
	fmt.Fprintln(out)
	t = cli.NewTable(out, "SLOT", "ADDRESS", "BACKEND", "NODES")
	for _, s := range v.Slots[:cli.Longest(out, len(v.Slots))] {
		t.Row(fmt.Sprint(s.Slot), cli.OrDash(s.Address), cli.OrDash(s.Backend), fmt.Sprint(s.Nodes))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(v.Slots))
	return nil
}

func writeNFSNodes(out io.Writer, v View) error {
	fmt.Fprintln(out)
	if len(v.Nodes) == 0 {
		fmt.Fprintln(out, "No node has a volume of the service.")
	} else {
		t := cli.NewTable(out, "NODE", "ZONE", "BACKEND", "ADDRESS", "VOLUMES", "WHY")
		for _, n := range v.Nodes {
			t.Row(n.Node, cli.OrDash(n.Zone), cli.OrDash(n.Backend), n.Address, fmt.Sprint(n.Volumes), n.Why)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(v.Waiting) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "NODE", "VOLUME THAT WAITS FOR AN ADDRESS")
	for _, w := range v.Waiting[:cli.Longest(out, len(v.Waiting))] {
		t.Row(w.Node, w.Volume)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(v.Waiting))
	return nil
}

package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

func writeStatus(out io.Writer, v View, program, cluster string, now time.Time) error {
	cli.WriteLine(out, "Cluster %s: %s", cmp.Or(cluster, "(no name)"), v.Summary())
	for _, p := range v.Profiles {
		if err := writeProfile(out, p, program, now); err != nil {
			return err
		}
	}
	if err := writeLost(out, v.LostNodes, now); err != nil {
		return err
	}
	if err := writeServices(out, v.NFSServices, program); err != nil {
		return err
	}
	if len(v.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range v.Notes {
		cli.WriteLine(out, "Note: %s", n)
	}
	return nil
}

// Summary counts what needs attention.
func (v View) Summary() string {
	settings, waiting, wrong := 0, 0, 0
	for _, p := range v.Profiles {
		settings, waiting, wrong = settings+len(p.Waiting), waiting+p.In(datapath.Waiting), wrong+p.In(datapath.Wrong)
	}
	var parts []string
	for _, part := range []struct {
		count     int
		one, many string
	}{
		{wrong, "1 data path is wrong", "%d data paths are wrong"},
		{settings, "1 setting is not applied", "%d settings are not applied"},
		{waiting, "1 volume waits", "%d volumes wait"},
		{len(v.LostNodes), "1 node is lost", "%d nodes are lost"},
	} {
		switch {
		case part.count == 1:
			parts = append(parts, part.one)
		case part.count > 1:
			parts = append(parts, fmt.Sprintf(part.many, part.count))
		}
	}
	if len(parts) == 0 {
		if v.State == datapath.OK {
			return "all is as it should be"
		}
		return string(v.State)
	}
	return strings.Join(parts, ", ")
}

func writeProfile(out io.Writer, p ProfileView, program string, now time.Time) error {
	fmt.Fprintln(out)
	n := p.Network
	t := cli.NewTable(out)
	t.Row("Profile:", p.Profile+" in "+p.Namespace)
	t.Row("Network for RWX volumes:", fmt.Sprintf("%s (clients: %s, servers: %s)", NetworkName(n.Desired), NetworkName(n.Clients), NetworkName(n.Servers)))
	t.Row("Roll-out:", strings.TrimSuffix(cmp.Or(n.Phase, "Unknown")+": "+n.Message, ": "))
	t.Row("Settings:", fmt.Sprintf("%d of %d applied", p.Applied, p.Applied+len(p.Waiting)))
	t.Row("RWX volumes:", fmt.Sprintf("%d, %d attached", len(p.Volumes), p.Attached()))
	if err := t.Flush(); err != nil {
		return err
	}
	if len(p.Waiting) > 0 {
		fmt.Fprintln(out)
		t = cli.NewTable(out, "SETTING NOT APPLIED", "VALUE", "SINCE", "NEXT", "REASON")
		for _, s := range p.Waiting {
			t.Row(s.Name, cli.Cell(s.Value), cli.Ago(s.Since, now), program+" settings "+s.Name, s.Reason)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return writeDisagreeing(out, p, program)
}

// Finding is a part of a data path that is not as it should be.
type Finding struct {
	Volume string
	State  datapath.State
	// Hop is the kind of hop; empty if no hop says more than the volume.
	Hop datapath.Kind
	// What is wrong or waited for, and the Next command.
	What, Next string
}

// Findings of all volumes. program is what people type to run Fairlead.
func (p ProfileView) Findings(program string) []Finding {
	var found []Finding
	for _, v := range p.Volumes {
		before := len(found)
		for _, h := range v.Hops {
			if h.State != datapath.OK {
				found = append(found, Finding{v.Volume, h.State, h.Kind, h.Message, h.Command})
			}
		}
		if v.WaitsFor != "" && len(found) == before { // no hop says more than the volume
			found = append(found, Finding{v.Volume, v.State, "", v.WaitsFor, program + " status volume " + v.Volume})
		}
	}
	return found
}

// writeDisagreeing lists hops that are not as they should be, each with the next command.
func writeDisagreeing(out io.Writer, p ProfileView, program string) error {
	found := p.Findings(program)
	if len(found) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "VOLUME", "STATE", "HOP", "NEXT", "WHAT")
	for _, f := range found[:min(len(found), cli.LongestList)] {
		t.Row(f.Volume, string(f.State), cli.OrDash(string(f.Hop)), f.Next, f.What)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	cli.More(out, len(found))
	return nil
}

func writeLost(out io.Writer, nodes []LostNode, now time.Time) error {
	if len(nodes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "LOST NODE", "PHASE", "LOST", "WAITS FOR", "NEXT")
	for _, n := range nodes {
		t.Row(n.Node, n.Phase, cli.Ago(n.LostSince, now), cli.OrDash(n.WaitsFor), cli.OrDash(n.Next))
	}
	return t.Flush()
}

func writeServices(out io.Writer, services []NFSService, program string) error {
	if len(services) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "NFS SERVICE", "READY", "BACKENDS HEALTHY", "MESSAGE", "NEXT")
	for _, s := range services {
		next := "-"
		if s.State != datapath.OK {
			next = program + " nfs " + s.Service
		}
		t.Row(s.Service, s.Ready, fmt.Sprintf("%d of %d", s.Healthy, s.Backends), cli.OrDash(s.Message), next)
	}
	return t.Flush()
}

func writeVolumes(out io.Writer, volumes []datapath.Path, cluster string) error {
	cli.WriteLine(out, "Cluster %s: %d RWX volumes", cmp.Or(cluster, "(no name)"), len(volumes))
	if len(volumes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "VOLUME", "NODES", "WORKLOADS", "NETWORK", "WANTED", "SERVER", "STATE", "WAITS FOR")
	for _, v := range volumes {
		t.Row(v.Volume, cli.List(v.Nodes), cli.List(v.Workloads), NetworkOf(v), NetworkName(v.Wanted), cli.List(v.Server), string(v.State), cli.OrDash(v.Reason()))
	}
	return t.Flush()
}

// writeVolume shows the path of one volume, a line for each hop.
func writeVolume(out io.Writer, v datapath.Path, cluster string) error {
	cli.WriteLine(out, "Cluster %s: volume %s: %s", cmp.Or(cluster, "(no name)"), v.Volume, v.State)
	fmt.Fprintln(out)
	t := cli.NewTable(out)
	t.Row("Workloads:", cli.List(v.Workloads))
	t.Row("Nodes:", cli.List(v.Nodes))
	t.Row("Network:", NetworkOf(v))
	t.Row("Wanted:", NetworkName(v.Wanted))
	if v.WaitsFor != "" {
		t.Row("Waits for:", v.WaitsFor)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(v.Hops) == 0 {
		fmt.Fprintln(out, "\nThe volume has no Service and no server: they are created when a pod uses the volume.")
		return nil
	}
	fmt.Fprintln(out)
	t = cli.NewTable(out, "HOP", "NAME", "NODE", "NETWORK", "ADDRESSES", "STATE")
	for _, h := range v.Hops {
		network := NetworkName(h.Network)
		if h.Kind == datapath.Endpoint {
			network = "-"
		}
		t.Row(string(h.Kind), cli.OrDash(h.Name), cli.OrDash(h.Node), network, cli.List(h.Addresses), string(h.State))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, h := range v.Hops {
		if h.State != datapath.OK {
			fmt.Fprintln(out)
			cli.WriteLine(out, "%s, %s: %s", h.Kind, h.State, h.Message)
			cli.WriteLine(out, "Next: %s", h.Command)
		}
	}
	return nil
}

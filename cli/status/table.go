package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

func writeStatus(out io.Writer, v View, program, cluster string, now time.Time) {
	cli.WriteLine(out, "Cluster %s: %s", cmp.Or(cluster, "(no name)"), v.Summary())
	if len(v.Installation.Findings) > 0 {
		fmt.Fprintln(out)
	}
	for _, f := range v.Installation.Findings {
		cli.WriteLine(out, "Fairlead: %s", f)
	}
	if w := v.Windows; w != nil && w.Opens != nil {
		cli.WriteLine(out, "Maintenance windows (%s): restarts begin at %s", strings.Join(w.Configured, "; "), w.OpensText())
	}
	if v.Longhorn != nil {
		writeLonghorn(out, *v.Longhorn, program, now)
	}
	cli.WriteList(out, v.LostNodes, func(n LostNode) []string {
		return []string{n.Node, n.Phase, cli.Ago(n.LostSince, now), cli.OrDash(n.WaitsFor), cli.OrDash(n.OnlyIf), cli.OrDash(n.Next)}
	}, "LOST NODE", "PHASE", "LOST", "WAITS FOR", "ONLY IF", "NEXT")
	cli.WriteList(out, v.NFSServices, func(s NFSService) []string {
		next := "-"
		if s.State != datapath.OK {
			next = program + " nfs " + s.Service
		}
		return []string{s.Service, s.Ready, fmt.Sprintf("%d of %d", s.Healthy, s.Backends), cli.OrDash(s.Message), next}
	}, "NFS SERVICE", "READY", "BACKENDS HEALTHY", "MESSAGE", "NEXT")
	if len(v.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range v.Notes {
		cli.WriteLine(out, "Note: %s", n)
	}
}

// Summary counts what needs attention.
func (v View) Summary() string {
	settings, waiting, wrong, networks, writers := 0, 0, 0, 0, 0
	for _, n := range v.LostNodes {
		if n.MayWrite {
			writers++
		}
	}
	if l := v.Longhorn; l != nil {
		if l.Network.Problem != "" {
			networks = 1
		}
		settings, waiting, wrong = len(l.Waiting), l.In(datapath.Waiting), l.In(datapath.Wrong)
	}
	var parts []string
	for _, part := range []struct {
		count     int
		one, many string
	}{
		{len(v.Installation.Findings), "Fairlead itself needs attention", "Fairlead itself needs attention in %d points"},
		{writers, "1 node may write to volumes that another node has now", "%d nodes may write to volumes that another node has now"},
		{networks, "the network for RWX volumes is missing or broken", ""},
		{wrong, "1 data path is wrong", "%d data paths are wrong"},
		{settings, "1 setting is not applied", "%d settings are not applied"},
		{waiting, "1 volume waits", "%d volumes wait"},
		{len(v.LostNodes) - writers, "1 node is lost or not readmitted", "%d nodes are lost or not readmitted"},
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

func writeLonghorn(out io.Writer, l LonghornView, program string, now time.Time) {
	fmt.Fprintln(out)
	n := l.Network
	cli.WriteFacts(out, [][2]string{
		{"Longhorn:", "in namespace " + l.Namespace},
		{"Network for RWX volumes:", fmt.Sprintf("%s (clients: %s, servers: %s)", NetworkName(n.Desired), NetworkName(n.Clients), NetworkName(n.Servers))},
		{"Roll-out:", strings.TrimSuffix(cmp.Or(n.Phase, "Unknown")+": "+n.Message, ": ")},
		{"Problem:", n.Problem},
		{"Settings:", fmt.Sprintf("%d of %d applied", l.Applied, l.Applied+len(l.Waiting))},
		{"RWX volumes:", fmt.Sprintf("%d, %d attached", len(l.Volumes), l.Attached())},
	})
	cli.WriteList(out, l.Waiting, func(s v1.Setting) []string {
		return []string{s.Name, cli.Cell(s.Value), cli.Ago(s.Since, now), program + " settings " + s.Name, s.Reason}
	}, "SETTING NOT APPLIED", "VALUE", "SINCE", "NEXT", "REASON")
	cli.WriteList(out, l.Findings(program), func(f Finding) []string {
		return []string{f.Volume, string(f.State), cli.OrDash(string(f.Hop)), f.Next, f.What}
	}, "VOLUME", "STATE", "HOP", "NEXT", "WHAT")
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
func (l LonghornView) Findings(program string) []Finding {
	var found []Finding
	for _, v := range l.Volumes {
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

func writeVolumes(out io.Writer, volumes []datapath.Path, fairlead []string, cluster string) {
	cli.WriteLine(out, "Cluster %s: %d RWX volumes", cmp.Or(cluster, "(no name)"), len(volumes))
	for _, f := range fairlead {
		cli.WriteLine(out, "Fairlead: %s", f)
	}
	if len(volumes) == 0 {
		return
	}
	fmt.Fprintln(out)
	cli.WriteRows(out, volumes, func(v datapath.Path) []string {
		return []string{v.Volume, cli.List(v.Nodes), cli.List(v.Workloads), NetworkOf(v), NetworkName(v.Wanted), cli.List(v.Server), string(v.State), cli.OrDash(v.Reason())}
	}, "VOLUME", "NODES", "WORKLOADS", "NETWORK", "WANTED", "SERVER", "STATE", "WAITS FOR")
}

// writeVolume shows the path of one volume, a line for each hop.
func writeVolume(out io.Writer, v datapath.Path, cluster string) {
	cli.WriteLine(out, "Cluster %s: volume %s: %s", cmp.Or(cluster, "(no name)"), v.Volume, v.State)
	fmt.Fprintln(out)
	cli.WriteFacts(out, [][2]string{
		{"Workloads:", cli.List(v.Workloads)}, {"Nodes:", cli.List(v.Nodes)}, {"Network:", NetworkOf(v)}, {"Wanted:", NetworkName(v.Wanted)}, {"Waits for:", v.WaitsFor},
	})
	if len(v.Hops) == 0 {
		fmt.Fprintln(out, "\nThe volume has no Service and no server: they are created when a pod uses the volume.")
		return
	}
	fmt.Fprintln(out)
	cli.WriteRows(out, v.Hops, func(h datapath.Hop) []string {
		network := NetworkName(h.Network)
		if h.Kind == datapath.Endpoint || h.Kind == datapath.Workload || h.Name == "" {
			network = "-"
		}
		return []string{string(h.Kind), cli.OrDash(h.Name), cli.OrDash(h.Node), network, cli.List(h.Addresses), string(h.State)}
	}, "HOP", "NAME", "NODE", "NETWORK", "ADDRESSES", "STATE")
	for _, h := range v.Hops {
		if h.State != datapath.OK {
			fmt.Fprintln(out)
			cli.WriteLine(out, "%s, %s: %s", h.Kind, h.State, h.Message)
			cli.WriteLine(out, "Next: %s", h.Command)
		}
	}
}

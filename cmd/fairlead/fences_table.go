package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

func writeFences(out io.Writer, views []fenceView, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(out, "No NodeFences. Is fencing configured, and does the controller run?")
		return nil
	}
	t := newTable(out, "NODE", "PHASE", "REASON", "VOLUMES", "ADDRESSES FROM", "SEEN", "LOST", "WAITS FOR")
	for _, v := range views {
		sources, seen := v.sources()
		t.row(v.Node, orDash(v.Phase), orDash(v.Reason), fmt.Sprint(len(v.Volumes)), sources, ago(seen, now), ago(v.LostSince, now), orDash(v.WaitsFor))
	}
	return t.flush()
}

// sources of the addresses, and when the one that is silent for longest was last heard of.
func (v fenceView) sources() (names string, seen *time.Time) {
	var all []string
	for _, a := range v.Addresses {
		if a.Source != "" && !slices.Contains(all, a.Source) {
			all = append(all, a.Source)
		}
		if a.LastSeen != nil && !a.Earlier && (seen == nil || a.LastSeen.Before(*seen)) {
			seen = a.LastSeen
		}
	}
	return orDash(strings.Join(all, ",")), seen
}

// writeFence shows all of one node: of each machine that has or had its name.
func writeFence(out io.Writer, views []fenceView, now time.Time) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := writeFenceHead(out, v, now); err != nil {
			return err
		}
		if err := writeFenceLists(out, v, now); err != nil {
			return err
		}
	}
	return nil
}

func writeFenceHead(out io.Writer, v fenceView, now time.Time) error {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row("Node:", v.Node)
	if v.Record != v.Node {
		t.row("NodeFence:", v.Record)
	}
	t.row("Phase:", orDash(v.Phase))
	t.row("Reason:", orDash(v.Reason))
	if v.Message != "" {
		t.row("Message:", v.Message)
	}
	if v.LostSince != nil {
		t.row("Lost for:", ago(v.LostSince, now))
	}
	t.row("Waits for:", cmp.Or(v.WaitsFor, "nothing"))
	t.row("Next:", v.Next)
	if v.OnlyIf != "" {
		t.row("Only if:", v.OnlyIf)
	}
	return t.flush()
}

func writeFenceLists(out io.Writer, v fenceView, now time.Time) error {
	fmt.Fprintln(out)
	if err := writeAddresses(out, v.Addresses, now); err != nil {
		return err
	}
	if len(v.Volumes) > 0 {
		fmt.Fprintln(out)
		t := newTable(out, "VOLUME", "DRIVER", "CLUSTER", "NOTE")
		for _, h := range v.Volumes[:min(len(v.Volumes), longest)] {
			t.row(h.Name, h.Driver, orDash(h.ClusterID), h.note(now))
		}
		if err := t.flush(); err != nil {
			return err
		}
		more(out, len(v.Volumes))
	}
	if len(v.Fences) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "NETWORKFENCE", "STATE", "ADDRESSES", "CLASS", "DRIVER SAYS")
	for _, f := range v.Fences {
		t.row(f.Name, f.State, strings.Join(f.CIDRs, ", "), orDash(f.Class), orDash(f.Message))
	}
	return t.flush()
}

func writeAddresses(out io.Writer, addresses []fenceAddress, now time.Time) error {
	if len(addresses) == 0 {
		fmt.Fprintln(out, "The node is no client of protected storage, as far as is on record.")
		return nil
	}
	t := newTable(out, "DRIVER", "CLUSTER", "ADDRESS", "FROM", "SEEN", "FENCED WITH", "PROBLEM")
	for _, a := range addresses {
		from := orDash(a.Source)
		if a.Earlier {
			from += " (earlier)"
		}
		t.row(a.Driver, orDash(a.ClusterID), orDash(a.CIDR), from, ago(a.LastSeen, now), fencedWith(a.Class, a.Secret), orDash(a.Problem))
	}
	return t.flush()
}

func (h fenceVolume) note(now time.Time) string {
	var notes []string
	if h.Shared {
		notes = append(notes, "shared")
	}
	if h.Waiting {
		notes = append(notes, "not attached yet")
	}
	if h.Detached {
		notes = append(notes, "detached by force, and in use")
	}
	if h.Until != nil && h.Until.After(now) {
		notes = append(notes, "held for "+duration.HumanDuration(h.Until.Sub(now)))
	}
	return orDash(strings.Join(notes, ", "))
}

func fencedWith(class, secret string) string {
	switch {
	case class != "":
		return "class " + class
	case secret != "":
		return "secret " + secret
	}
	return "-"
}

func ago(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*t)))
}

func orDash(text string) string { return cmp.Or(text, "-") }

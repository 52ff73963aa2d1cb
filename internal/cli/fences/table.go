package fences

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead-io/fairlead/internal/cli"
)

func writeFences(out io.Writer, views []View, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(out, "No NodeFences: fencing is not installed, or its controller does not run.")
		return nil
	}
	t := cli.NewTable(out, "NODE", "PHASE", "REASON", "VOLUMES", "ADDRESSES FROM", "SEEN", "LOST", "WAITS FOR")
	for _, v := range views {
		sources, seen := v.sources()
		t.Row(v.Node, cli.OrDash(v.Phase), cli.OrDash(v.Reason), fmt.Sprint(len(v.Volumes)), sources, cli.Ago(seen, now), cli.Ago(v.LostSince, now), cli.OrDash(v.WaitsFor))
	}
	return t.Flush()
}

// sources of the addresses, and the oldest report of a current address.
func (v View) sources() (names string, seen *time.Time) {
	var all []string
	for _, a := range v.Addresses {
		if a.Source != "" && !slices.Contains(all, a.Source) {
			all = append(all, a.Source)
		}
		if a.LastSeen != nil && !a.Earlier && (seen == nil || a.LastSeen.Before(*seen)) {
			seen = a.LastSeen
		}
	}
	return cli.OrDash(strings.Join(all, ",")), seen
}

// writeFence shows one node: each machine that has or had the name.
func writeFence(out io.Writer, views []View, now time.Time) error {
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

func writeFenceHead(out io.Writer, v View, now time.Time) error {
	t := cli.NewTable(out)
	t.Row("Node:", v.Node)
	if v.Record != v.Node {
		t.Row("NodeFence:", v.Record)
	}
	t.Row("Phase:", cli.OrDash(v.Phase))
	t.Row("Reason:", cli.OrDash(v.Reason))
	if v.Message != "" {
		t.Row("Message:", v.Message)
	}
	if v.LastError != "" {
		t.Row("Last error:", v.LastError)
	}
	if v.LostSince != nil {
		t.Row("Lost for:", cli.Ago(v.LostSince, now))
	}
	t.Row("Waits for:", cmp.Or(v.WaitsFor, "nothing"))
	t.Row("Next:", v.Next)
	if v.OnlyIf != "" {
		t.Row("Only if:", v.OnlyIf)
	}
	return t.Flush()
}

func writeFenceLists(out io.Writer, v View, now time.Time) error {
	fmt.Fprintln(out)
	if err := writeAddresses(out, v.Addresses, now); err != nil {
		return err
	}
	if len(v.Volumes) > 0 {
		fmt.Fprintln(out)
		t := cli.NewTable(out, "VOLUME", "DRIVER", "CLUSTER", "NOTE")
		for _, h := range v.Volumes[:min(len(v.Volumes), cli.LongestList)] {
			t.Row(h.Name, h.Driver, cli.OrDash(h.ClusterID), h.Note(now))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		cli.More(out, len(v.Volumes))
	}
	if len(v.Fences) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := cli.NewTable(out, "NETWORKFENCE", "STATE", "ADDRESSES", "CLASS", "DRIVER SAYS")
	for _, f := range v.Fences {
		t.Row(f.Name, f.State, strings.Join(f.CIDRs, ", "), cli.OrDash(f.Class), cli.OrDash(f.Message))
	}
	return t.Flush()
}

func writeAddresses(out io.Writer, addresses []Address, now time.Time) error {
	if len(addresses) == 0 {
		fmt.Fprintln(out, "The node is no client of protected storage, as far as is on record.")
		return nil
	}
	t := cli.NewTable(out, "DRIVER", "CLUSTER", "ADDRESS", "FROM", "SEEN", "FENCED WITH", "PROBLEM")
	for _, a := range addresses {
		from := cli.OrDash(a.Source)
		if a.Earlier {
			from += " (earlier)"
		}
		t.Row(a.Driver, cli.OrDash(a.ClusterID), cli.OrDash(a.CIDR), from, cli.Ago(a.LastSeen, now), a.FencedWith(), cli.OrDash(a.Problem))
	}
	return t.Flush()
}

// Note on the volume in a few words.
func (h Volume) Note(now time.Time) string {
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
	return cli.OrDash(strings.Join(notes, ", "))
}

// FencedWith names the class or the secret.
func (a Address) FencedWith() string { return fencedWith(a.Class, a.Secret) }

func fencedWith(class, secret string) string {
	switch {
	case class != "":
		return "class " + class
	case secret != "":
		return "secret " + secret
	}
	return "-"
}

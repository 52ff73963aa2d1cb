package fences

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead-io/fairlead/cli"
)

func writeFences(out io.Writer, views []View, now time.Time) {
	if len(views) == 0 {
		fmt.Fprintln(out, "No NodeFences: fencing is not installed, or its controller does not run.")
		return
	}
	cli.WriteRows(out, views, func(v View) []string {
		sources, seen := v.sources()
		return []string{
			v.Node, cli.OrDash(v.Phase), cli.OrDash(v.Reason), fmt.Sprint(len(v.Volumes)), sources, cli.Ago(seen, now), cli.Ago(v.LostSince, now), cli.OrDash(v.WaitsFor),
		}
	}, "NODE", "PHASE", "REASON", "VOLUMES", "ADDRESSES FROM", "SEEN", "LOST", "WAITS FOR")
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
func writeFence(out io.Writer, views []View, now time.Time) {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(out)
		}
		writeFenceHead(out, v, now)
		writeFenceLists(out, v, now)
	}
}

func writeFenceHead(out io.Writer, v View, now time.Time) {
	lost := ""
	if v.LostSince != nil {
		lost = cli.Ago(v.LostSince, now)
	}
	record := v.Record
	if record == v.Node {
		record = ""
	}
	cli.WriteFacts(out, [][2]string{
		{"Node:", v.Node}, {"NodeFence:", record}, {"Phase:", cli.OrDash(v.Phase)}, {"Reason:", cli.OrDash(v.Reason)}, {"Message:", v.Message}, {"Last error:", v.LastError},
		{"Lost for:", lost}, {"Waits for:", cmp.Or(v.WaitsFor, "nothing")}, {"Next:", v.Next}, {"Only if:", v.OnlyIf},
	})
}

func writeFenceLists(out io.Writer, v View, now time.Time) {
	if len(v.Addresses) == 0 {
		fmt.Fprintln(out, "\nThe node is no client of protected storage, as far as is on record.")
	}
	cli.WriteList(out, v.Addresses, func(a Address) []string {
		from := cli.OrDash(a.Source)
		if a.Earlier {
			from += " (earlier)"
		}
		return []string{a.Driver, cli.OrDash(a.ClusterID), cli.OrDash(a.CIDR), from, cli.Ago(a.LastSeen, now), a.FencedWith(), cli.OrDash(a.Problem)}
	}, "DRIVER", "CLUSTER", "ADDRESS", "FROM", "SEEN", "FENCED WITH", "PROBLEM")
	cli.WriteList(out, v.Volumes, func(h Volume) []string {
		return []string{h.Name, h.Driver, cli.OrDash(h.ClusterID), h.Note(now)}
	}, "VOLUME", "DRIVER", "CLUSTER", "NOTE")
	cli.WriteList(out, v.Fences, func(f Fence) []string {
		return []string{f.Name, f.State, strings.Join(f.CIDRs, ", "), cli.OrDash(f.Class), cli.OrDash(f.Message)}
	}, "NETWORKFENCE", "STATE", "ADDRESSES", "CLASS", "DRIVER SAYS")
}

// Note on the volume in a few words.
func (h Volume) Note(now time.Time) string {
	var notes []string
	if h.Shared {
		notes = append(notes, "shared")
	}
	if h.Released {
		notes = append(notes, "released by hand")
	}
	switch {
	case h.Until == nil:
	case h.Until.After(now):
		notes = append(notes, "held for "+duration.HumanDuration(h.Until.Sub(now)))
	default:
		notes = append(notes, "held until its kubelet is in touch")
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

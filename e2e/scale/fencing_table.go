package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-io/fairlead/bench/apiserver"
)

// writeFencing prints measurements, and marks those that miss their target.
func writeFencing(out io.Writer, results []fencingResult) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := []string{"WHAT", "TARGET"}
	for _, r := range results {
		header = append(header, fmt.Sprintf("%d NODES", r.nodes))
	}
	fmt.Fprintf(table, "\n%s\n", strings.Join(header, "\t"))
	// add a row; most is the target, 0 is none.
	add := func(what, format string, most float64, value func(fencingResult) float64) {
		cells := []string{what, "-"}
		if most > 0 {
			cells[1] = "≤ " + fmt.Sprintf(format, most)
		}
		for _, r := range results {
			v := value(r)
			cell := fmt.Sprintf(format, v)
			if most > 0 && v > most {
				cell += " MISSED"
			}
			if v < 0 {
				cell = "did not run"
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	for _, p := range []struct {
		name       string
		mostMemory float64 // MiB
		of         func(fencingResult) processCost
	}{{"webhook", 256, func(r fencingResult) processCost { return r.webhook }}, {"controller", 512, func(r fencingResult) processCost { return r.ctrl }}} {
		add(p.name+": memory", "%.1f MiB", p.mostMemory, func(r fencingResult) float64 { return p.of(r).memory })
		add("  of that, the program's file", "%.1f MiB", 0, func(r fencingResult) float64 { return p.of(r).shared })
		add("  most since the start", "%.1f MiB", 0, func(r fencingResult) float64 { return p.of(r).peak })
		add(p.name+": CPU", "%.3f cores", mostCores, func(r fencingResult) float64 { return p.of(r).cpu.Seconds() / steadyTime.Seconds() })
		add(p.name+": requests per minute", "%.0f", 0, func(r fencingResult) float64 {
			return float64(total(r.steadyCalls, p.name)) * float64(time.Minute/steadyTime)
		})
	}
	add("holders of the shared volume", "%.0f", 0, func(r fencingResult) float64 { return float64(r.holders) })
	add("attachment judged, median", "%.1f ms", milliseconds(mostJudging), func(r fencingResult) float64 { return measured(r.median, milliseconds(r.median)) })
	add("attachment judged, longest", "%.1f ms", milliseconds(mostJudging), func(r fencingResult) float64 { return measured(r.worst, milliseconds(r.worst)) })
	add("one node lost: requests of the controller", "%.0f", mostRequests, func(r fencingResult) float64 {
		return measured(r.incidentTime, float64(total(r.incident, "controller")))
	})
	add("one node lost: time until fenced", "%.2f s", 0, func(r fencingResult) float64 { return measured(r.incidentTime, r.incidentTime.Seconds()) })
	add("nodes lost at once", "%.0f", 0, func(r fencingResult) float64 { return float64(r.rackNodes) })
	add("time until all are fenced", "%.1f s", mostRackTime.Seconds(), func(r fencingResult) float64 { return measured(r.rackTime, r.rackTime.Seconds()) })
	add("requests of the controller per node", "%.0f", 0, func(r fencingResult) float64 {
		return measured(r.rackTime, float64(total(r.rackCalls, "controller"))/float64(max(1, r.rackNodes)))
	})
	if err := table.Flush(); err != nil {
		return err
	}
	last := results[len(results)-1]
	fmt.Fprintf(out, "\nrequests at %d nodes, in %s of the steady state, for one lost node, and for %d lost at once:\n", last.nodes, steadyTime, last.rackNodes)
	all := map[apiserver.Call]int{}
	for _, calls := range []map[apiserver.Call]int{last.steadyCalls, last.incident, last.rackCalls} {
		maps.Copy(all, calls)
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, call := range slices.SortedFunc(maps.Keys(all), func(a, b apiserver.Call) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	}) {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%d\t%d\n", call.Agent, call.Verb, call.Resource, last.steadyCalls[call], last.incident[call], last.rackCalls[call])
	}
	fmt.Fprintf(table, "\n%d CPUs, shared with the stand-in of the API server, %s, %s/%s; leases are not counted\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return table.Flush()
}

// measured is a value, or -1 without a measurement.
func measured(took time.Duration, value float64) float64 {
	if took == 0 {
		return -1
	}
	return value
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// total of the requests of a part of Fairlead, except for its lease.
func total(calls map[apiserver.Call]int, part string) (n int) {
	for call, many := range calls {
		if call.Agent == "fairlead-"+part && call.Resource != "leases.coordination.k8s.io" {
			n += many
		}
	}
	return n
}

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
)

// row of the table: one number for each size.
type row struct {
	what   string
	values []float64
	// format of a value.
	format string
}

// write prints each size beside the first, and by how much it is more.
func write(out io.Writer, results []result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := []string{"WHAT"}
	for i, r := range results {
		header = append(header, fmt.Sprintf("%d NODES", r.size.nodes))
		if i > 0 {
			header = append(header, "RATIO")
		}
	}
	fmt.Fprintf(table, "\n%s\n", strings.Join(header, "\t"))
	for _, row := range rows(results) {
		cells := []string{row.what}
		for i, value := range row.values {
			cells = append(cells, fmt.Sprintf(row.format, value))
			if i > 0 {
				cells = append(cells, ratio(value, row.values[0]))
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, r := range results {
		fmt.Fprintf(out, "\n%s: %s", r.size, r.verdict)
	}
	_, err := fmt.Fprintf(out, "\n\nrequests and CPU time are the controller's, from the first restart on; %d CPUs, %s, %s/%s\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func rows(results []result) []row {
	var all []row
	add := func(what, format string, value func(result) float64) {
		r := row{what: what, format: format}
		for _, result := range results {
			r.values = append(r.values, value(result))
		}
		all = append(all, r)
	}
	add("volumes", "%.0f", func(r result) float64 { return float64(r.size.volumes) })
	add("workload pods", "%.0f", func(r result) float64 { return float64(r.size.pods) })
	for i := range results[0].phases {
		add(results[0].phases[i].what, "%.1f s", func(r result) float64 { return r.phases[i].took.Seconds() })
	}
	add("evictions", "%.0f", func(r result) float64 { return float64(r.verdict.evictions) })
	add("evictions per second, from the first to the last", "%.1f", func(r result) float64 { return float64(r.verdict.evictions) / float64(max(1, r.verdict.seconds)) })
	add("evictions per second, in the busiest ten seconds", "%.1f", func(r result) float64 { return float64(r.verdict.busiest) / 10 })
	add("controller: CPU time before the restarts", "%.1f s", func(r result) float64 { return r.atRest.cpu.Seconds() })
	add("controller: CPU time", "%.1f s", func(r result) float64 { return r.cost.cpu.Seconds() })
	add("controller: memory before the restarts", "%.1f MiB", func(r result) float64 { return r.cost.before })
	add("controller: most memory", "%.1f MiB", func(r result) float64 { return r.cost.peak })
	add("controller: API requests", "%.0f", func(r result) float64 { return float64(r.cost.total()) })
	add("controller: API requests per eviction", "%.2f", func(r result) float64 { return float64(r.cost.total()) / float64(max(1, r.verdict.evictions)) })
	for _, kind := range kinds(results) {
		add("  "+kind, "%.0f", func(r result) float64 { return float64(r.cost.requests[kind]) })
	}
	return all
}

// kinds of requests, those that were made most at the last size first.
func kinds(results []result) []string {
	all := map[string]int{}
	for _, r := range results {
		maps.Copy(all, r.cost.requests)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b))
	})
}

func ratio(value, base float64) string {
	if base == 0 {
		return "-"
	}
	return fmt.Sprintf("× %.1f", value/base)
}

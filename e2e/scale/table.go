package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// row of a table: one number for each size of the cluster.
type row struct {
	what, format string
	// most is the target; 0 is none.
	most   float64
	values []float64
}

// none stands for a value that was not measured.
const none = -1

// rowsOf collects the rows of results, one result a size.
type rowsOf[T any] struct {
	results []T
	rows    []row
}

func (r *rowsOf[T]) add(what, format string, value func(T) float64) {
	r.addTarget(what, format, 0, value)
}

func (r *rowsOf[T]) addTarget(what, format string, most float64, value func(T) float64) {
	added := row{what: what, format: format, most: most}
	for _, result := range r.results {
		added.values = append(added.values, value(result))
	}
	r.rows = append(r.rows, added)
}

// writeTable prints the numbers of each size beside those of the first, and the ratio; of three sizes or more, also what a line
// through them adds for each 1,000 nodes. It marks missed targets.
func writeTable(out io.Writer, sizes []int, rows []row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := []string{"WHAT", "TARGET"}
	for i, nodes := range sizes {
		header = append(header, fmt.Sprintf("%d NODES", nodes))
		if i > 0 {
			header = append(header, "RATIO")
		}
	}
	if len(sizes) > 2 {
		header = append(header, "EACH 1,000 MORE")
	}
	fmt.Fprintf(table, "\n%s\n", strings.Join(header, "\t"))
	for _, r := range rows {
		cells := []string{r.what, "-"}
		if r.most > 0 {
			cells[1] = fmt.Sprintf("≤ "+r.format, r.most)
		}
		for i, value := range r.values {
			cell := fmt.Sprintf(r.format, value)
			switch {
			case value == none:
				cell = "did not run"
			case r.most > 0 && value > r.most:
				cell += " MISSED"
			}
			cells = append(cells, cell)
			if i > 0 {
				cells = append(cells, ratio(value, r.values[0]))
			}
		}
		if len(sizes) > 2 && !slices.Contains(r.values, none) {
			cells = append(cells, fmt.Sprintf(r.format, 1000*slope(sizes, r.values)))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	fmt.Fprintf(table, "\n%d CPUs, %s, %s/%s\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return table.Flush()
}

// slope of the line with the least squares.
func slope(sizes []int, values []float64) float64 {
	var x, y, xx, xy float64
	for i, size := range sizes {
		s := float64(size)
		x, y, xx, xy = x+s, y+values[i], xx+s*s, xy+s*values[i]
	}
	n := float64(len(sizes))
	return (n*xy - x*y) / (n*xx - x*x)
}

func ratio(value, base float64) string {
	if base <= 0 || value < 0 {
		return "-"
	}
	return fmt.Sprintf("× %.1f", value/base)
}

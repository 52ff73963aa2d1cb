package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// row is one line of the table. target is the row's target, met whether the run
// reached it; rows without a target have a dash.
type row struct{ what, ours, theirs, ratio, target, met string }

func write(out io.Writer, rows []row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tFAIRLEAD\tCONTROLLER-RUNTIME\tRATIO (LEAST–MOST)\tTARGET\tMET")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.ours, r.theirs, r.ratio, r.target, r.met)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%d CPUs, %s, %s/%s\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// atLeast is a row with a target: controller-runtime costs at least so many times
// as much as Fairlead.
func atLeast(what string, ours, theirs series, times float64) row {
	r := theirs.over(ours)
	return row{what, micro(ours), micro(theirs), r.String(), fmt.Sprintf("%g times less", times), met(r.median >= times)}
}

// atMost is a row with a target: Fairlead costs at most so many times as much as in
// the base case. The other side has no target.
func atMost(what string, ours, theirs, base series, times float64, of string) row {
	r := ours.over(base)
	return row{what, micro(ours), micro(theirs), r.String(), fmt.Sprintf("at most %g × %s", times, of), met(r.median <= times)}
}

func met(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}

func (r ratio) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", r.median, r.least, r.most) }

func micro(s series) string {
	return fmt.Sprintf("%.0f µs", float64(s.median())/float64(time.Microsecond))
}

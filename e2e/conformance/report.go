package conformance

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Passed reports whether all requirements are met.
func Passed(results []Result) bool {
	for _, r := range results {
		if r.Err != nil {
			return false
		}
	}
	return true
}

func (r Result) verdict() string {
	if r.Err != nil {
		return "FAIL"
	}
	return "ok"
}

func (r Result) text() string {
	if r.Err != nil {
		return oneLine(r.Err.Error())
	}
	return oneLine(r.Observed)
}

// WriteTable prints results for people.
func WriteTable(out io.Writer, results []Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VERDICT\tTHE WEBHOOK\tOBSERVED")
	for _, r := range results {
		observed := r.text()
		if r.Err != nil {
			observed += " (" + r.Why + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.verdict(), r.Name, observed)
	}
	return t.Flush()
}

// Markdown compares the results of several webhooks, in the order of names.
func Markdown(names []string, of map[string][]Result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "| the webhook | %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+1))
	for i, check := range Checks() {
		cells := []string{check.Name}
		for _, name := range names {
			r := of[name][i]
			cell := r.verdict()
			if observed := r.text(); observed != "" {
				cell += ": " + observed
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	return text.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

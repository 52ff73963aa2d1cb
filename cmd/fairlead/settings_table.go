package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

func writeSettings(out io.Writer, shown []v1.Setting, now time.Time) error {
	t := newTable(out, "NAME", "VALUE", "SOURCE", "APPLIED", "SINCE", "REASON")
	for _, s := range shown {
		t.row(s.Name, cell(s.Value), s.Source, fmt.Sprint(s.Applied), since(s, now), s.Reason)
	}
	return t.flush()
}

// writeSetting shows all of one.
func writeSetting(out io.Writer, s v1.Setting, now time.Time) error {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row("Name:", s.Name)
	t.row("Value:", value(s.Value))
	t.row("Source:", s.Source)
	t.row("Applied:", fmt.Sprint(s.Applied))
	t.row("Since:", since(s, now))
	t.row("Reason:", s.Reason)
	t.row("Default:", value(s.Default))
	t.row("Allowed:", s.Allowed)
	t.row("Gate:", s.Gate)
	t.row("Affects:", s.Affects)
	t.row("Profile:", s.Profile+" in "+s.Namespace)
	if err := t.flush(); err != nil || len(s.Blockers) == 0 {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out, "BLOCKED BY", "NODES", "WORKLOADS", "WHAT TO DO")
	for _, b := range s.Blockers {
		t.row(b.Kind+"/"+b.Name, names(b.Nodes), names(b.Workloads), b.Message)
	}
	return t.flush()
}

func since(s v1.Setting, now time.Time) string {
	if s.Since == nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(*s.Since))
}

// table aligns columns.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

func (t *table) flush() error {
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// widest is how long a value may be in a column.
const widest = 40

// value is a value on one line; "" is shown as such.
func value(text string) string {
	if text == "" {
		return `""`
	}
	return strings.Join(strings.Fields(text), " ")
}

func cell(text string) string {
	runes := []rune(value(text))
	if len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return string(runes)
}

func names(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

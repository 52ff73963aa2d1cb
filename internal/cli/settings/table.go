package settings

import (
	"fmt"
	"io"
	"slices"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/cli"
)

func writeSettings(out io.Writer, shown []v1.Setting, now time.Time) {
	rows := [][]string{{"NAME", "VALUE", "SOURCE", "APPLIED", "SINCE", "REASON"}}
	for _, s := range shown {
		rows = append(rows, []string{s.Name, cli.Cell(s.Value), s.Source, fmt.Sprint(s.Applied), cli.Ago(s.Since, now), s.Reason})
	}
	cli.WriteTable(out, rows)
}

// writeSetting shows all facts on one setting.
func writeSetting(out io.Writer, s v1.Setting, now time.Time) {
	cli.WriteTable(out, [][]string{
		{"Name:", s.Name},
		{"Value:", cli.Value(s.Value)},
		{"Source:", s.Source},
		{"Applied:", fmt.Sprint(s.Applied)},
		{"Since:", cli.Ago(s.Since, now)},
		{"Reason:", s.Reason},
		{"Default:", cli.Value(s.Default)},
		{"Allowed:", s.Allowed},
		{"Gate:", s.Gate},
		{"Affects:", s.Affects},
		{"Profile:", s.Profile + " in " + s.Namespace},
	})
	if len(s.Blockers) == 0 {
		return
	}
	fmt.Fprintln(out)
	rows := [][]string{{"BLOCKED BY", "NODES", "WORKLOADS", "WHAT TO DO", "NEXT"}}
	for _, b := range s.Blockers {
		row := []string{b.Kind + "/" + b.Name, cli.List(b.Nodes), cli.List(b.Workloads), b.Message, cli.Next(b, s.Namespace)}
		// Several components may wait for the same, such as a maintenance window.
		if !slices.ContainsFunc(rows, func(r []string) bool { return r[0] == row[0] && r[3] == row[3] }) {
			rows = append(rows, row)
		}
	}
	cli.WriteTable(out, rows)
}

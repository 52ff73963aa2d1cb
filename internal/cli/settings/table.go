package settings

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/cli"
)

func writeSettings(out io.Writer, shown []v1.Setting, now time.Time) error {
	t := cli.NewTable(out, "NAME", "VALUE", "SOURCE", "APPLIED", "SINCE", "REASON")
	for _, s := range shown {
		t.Row(s.Name, cli.Cell(s.Value), s.Source, fmt.Sprint(s.Applied), since(s, now), s.Reason)
	}
	return t.Flush()
}

// writeSetting shows all facts on one setting.
func writeSetting(out io.Writer, s v1.Setting, now time.Time) error {
	t := cli.NewTable(out)
	t.Row("Name:", s.Name)
	t.Row("Value:", cli.Value(s.Value))
	t.Row("Source:", s.Source)
	t.Row("Applied:", fmt.Sprint(s.Applied))
	t.Row("Since:", since(s, now))
	t.Row("Reason:", s.Reason)
	t.Row("Default:", cli.Value(s.Default))
	t.Row("Allowed:", s.Allowed)
	t.Row("Gate:", s.Gate)
	t.Row("Affects:", s.Affects)
	t.Row("Profile:", s.Profile+" in "+s.Namespace)
	if err := t.Flush(); err != nil || len(s.Blockers) == 0 {
		return err
	}
	fmt.Fprintln(out)
	t = cli.NewTable(out, "BLOCKED BY", "NODES", "WORKLOADS", "WHAT TO DO", "NEXT")
	shown := map[[3]string]bool{}
	for _, b := range s.Blockers {
		// Several components may wait for the same, such as a maintenance window.
		row := [3]string{b.Kind, b.Name, b.Message}
		if shown[row] {
			continue
		}
		shown[row] = true
		t.Row(b.Kind+"/"+b.Name, cli.List(b.Nodes), cli.List(b.Workloads), b.Message, cli.Next(b, s.Namespace))
	}
	return t.Flush()
}

func since(s v1.Setting, now time.Time) string {
	if s.Since == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*s.Since)))
}

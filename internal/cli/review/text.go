package review

import (
	"io"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// writeText prints what is worth reading: allowed manifests are only counted.
func writeText(out io.Writer, v reviewView) {
	if v.Facts == factsNone {
		cli.WriteLine(out, "Facts: the manifests alone. What is not in them does not exist, and what a change restarts is not known. --facts cluster reads a cluster too.")
	}
	for _, o := range v.Objects {
		if o.Outcome == outcomeAllowed {
			continue
		}
		cli.WriteLine(out, "")
		cli.WriteLine(out, "%s: %s  (%s:%d)", strings.ToUpper(o.Outcome), o.title, o.File, o.Line)
		for _, text := range o.Denials {
			cli.WriteLine(out, "  refused: %s", text)
		}
		for _, text := range o.Errors {
			cli.WriteLine(out, "  not decided: %s", text)
		}
		for _, text := range o.Warnings {
			cli.WriteLine(out, "  warning: %s", text)
		}
		for _, line := range strings.Split(strings.TrimSuffix(o.Diff, "\n"), "\n") {
			if line = strings.TrimRight(line, " "); line != "" {
				cli.WriteLine(out, "  %s", line)
			}
		}
	}
	s := v.Summary
	cli.WriteLine(out, "")
	cli.WriteLine(out, "%s reviewed: %d refused, %d undecided, %d patched, %d with warnings.",
		catalog.Count(s.Reviewed, "manifest"), s.Refused, s.Undecided, s.Patched, s.Warned)
	if s.NotAsked > 0 {
		cli.WriteLine(out, "%s: no rule of Fairlead is about them.", catalog.Count(s.NotAsked, "other manifest"))
	}
}

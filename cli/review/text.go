package review

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/fairlead-io/fairlead/cli"
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
		catalog.Count(s.Reviewed, "object"), s.Refused, s.Undecided, s.Patched, s.Warned)
	if s.NotAsked > 0 {
		cli.WriteLine(out, "No rule of Fairlead is about %s.", catalog.Count(s.NotAsked, "other object"))
	}
}

// The schema that CI systems read: a test suite with a test case for each manifest.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		// Output has warnings and the diff.
		Output string `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes warnings as failures if strict.
func writeJUnit(out io.Writer, v reviewView, strict bool) error {
	suite := junitSuite{Name: "fairlead review", Tests: v.Summary.Reviewed, Errors: v.Summary.Undecided}
	for _, o := range v.Objects {
		c := junitCase{Name: o.title, Class: "fairlead." + o.Kind, File: o.File, Line: o.Line}
		switch o.Outcome {
		case outcomeRefused:
			c.Failure = &junitProblem{o.Denials[0], strings.Join(o.Denials, "\n")}
		case outcomeUndecided:
			c.Error = &junitProblem{o.Errors[0], strings.Join(o.Errors, "\n")}
		}
		if strict && c.Failure == nil && len(o.Warnings) > 0 {
			c.Failure = &junitProblem{"warning: " + o.Warnings[0], strings.Join(o.Warnings, "\n")}
		}
		if c.Failure != nil {
			suite.Failures++
		}
		var lines []string
		for _, w := range o.Warnings {
			lines = append(lines, "warning: "+w)
		}
		if o.Diff != "" {
			lines = append(lines, o.Diff)
		}
		c.Output = strings.Join(lines, "\n")
		suite.Cases = append(suite.Cases, c)
	}
	document, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s%s\n", xml.Header, document); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

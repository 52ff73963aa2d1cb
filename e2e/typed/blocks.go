// Package typed reads the commands that a page of documentation shows, so that a test can type them.
//
// A fenced block without a language is typed. A block with prompts ("$ ") has commands and, below each, what it
// prints. A block without prompts is typed as a whole and must succeed. A block whose line before is
// "<!-- not typed: REASON -->" is left out. After "<!-- typed with NODE=node-1 -->", node-1 is typed in place of NODE.
// Of a table below such a line, commands of kubectl and fairlead are typed, and must succeed.
package typed

import (
	"fmt"
	"regexp"
	"strings"
)

// Command is typed as it stands.
type Command struct {
	// Line of the page.
	Line int
	// Text as the page has it.
	Text string
	// With has what is typed in place of words of the page: NODE=node-1 GROUP=team.
	With string
	// Shown is what the page shows below; Shows is false where the command must only succeed.
	Shown string
	Shows bool
}

var (
	exemption    = regexp.MustCompile(`^<!-- not typed: \S.* -->$`)
	substitution = regexp.MustCompile(`^<!-- typed with ((?:[A-Z]+=\S+ )+)-->$`)
	inTable      = regexp.MustCompile("`((?:kubectl|fairlead) [^`]+)`")
)

// Typed is the command as it is typed.
func (c Command) Typed() string { return c.replace(c.Text) }

// Wanted is what the command has to print.
func (c Command) Wanted() string { return c.replace(c.Shown) }

func (c Command) replace(text string) string {
	for _, pair := range strings.Fields(c.With) {
		word, value, _ := strings.Cut(pair, "=")
		text = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllString(text, value)
	}
	return text
}

// Record puts what was printed in place of what the page shows below the command.
func (c Command) Record(page, printed string) string {
	printed = strings.TrimSpace(printed) + "\n"
	if strings.HasSuffix(c.Shown, "\n\n") {
		printed += "\n"
	}
	command := prompt + c.Text + "\n"
	return strings.Replace(page, command+c.Shown, command+printed, 1)
}

// Commands of a page, in order.
func Commands(page string) ([]Command, error) {
	parts, err := partsOf(page)
	var all []Command
	for _, p := range parts {
		with := ""
		if match := substitution.FindStringSubmatch(p.before); match != nil {
			with = match[1]
		}
		for _, c := range p.commands(with != "") {
			c.With = with
			all = append(all, c)
		}
	}
	return all, err
}

// part of a page: a fenced block, or a table.
type part struct {
	before string // the last line above that is not empty
	fence  string // the line that opens the block; empty for a table
	start  int    // line of the page
	lines  []string
}

func partsOf(page string) ([]part, error) {
	var parts []part
	var p *part
	before, indent := "", ""
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimSpace(line)
		opens, row := strings.HasPrefix(text, "```"), strings.HasPrefix(text, "|")
		inside, inTable := p != nil && p.fence != "", p != nil && p.fence == ""
		switch {
		case inside && text == "```" || inTable && !row:
			parts, p = append(parts, *p), nil
		case p != nil:
			p.lines = append(p.lines, strings.TrimPrefix(line, indent))
		case opens:
			p = &part{before: before, fence: text, start: i + 2}
			indent, _, _ = strings.Cut(line, "`")
		case row:
			p, indent = &part{before: before, start: i + 1, lines: []string{line}}, ""
		}
		if text != "" {
			before = text
		}
	}
	if p != nil && p.fence != "" {
		return nil, fmt.Errorf("line %d: the block has no end", p.start)
	}
	return parts, nil
}

func (p part) commands(substituted bool) []Command {
	switch {
	case p.fence == "```" && !exemption.MatchString(p.before):
		return commandsOf(p.lines, p.start)
	case p.fence == "" && substituted:
		return commandsOfTable(p.lines, p.start)
	}
	return nil
}

func commandsOfTable(rows []string, start int) []Command {
	var all []Command
	for i, row := range rows {
		for _, command := range inTable.FindAllStringSubmatch(row, -1) {
			all = append(all, Command{Line: start + i, Text: command[1]})
		}
	}
	return all
}

const prompt = "$ "

func commandsOf(block []string, start int) []Command {
	prompts := false
	for _, line := range block {
		prompts = prompts || strings.HasPrefix(line, prompt)
	}
	if !prompts {
		return []Command{{Line: start, Text: strings.Join(block, "\n")}}
	}
	var all []Command
	for i, line := range block {
		command, isCommand := strings.CutPrefix(line, prompt)
		switch last := len(all) - 1; {
		case isCommand:
			all = append(all, Command{Line: start + i, Text: command})
		case last >= 0 && !all[last].Shows && strings.HasSuffix(all[last].Text, "\\"):
			all[last].Text += "\n" + line
		case last >= 0 && (strings.TrimSpace(line) != "" || all[last].Shows):
			all[last].Shown += line + "\n"
			all[last].Shows = true
		}
	}
	return all
}

// Package typed reads the commands that a page of documentation shows, so that a test can type them.
//
// A fenced block without a language is typed. A block with prompts ("$ ") has commands and, below each, what it
// prints. A block without prompts is typed as a whole and must succeed. A block whose line before is
// "<!-- not typed: REASON -->" is left out. After "<!-- typed with NODE=node-1 -->", node-1 is typed in place of NODE.
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
	var all []Command
	var block []string
	inside, skipped, start, with, indent := false, false, 0, "", ""
	before := "" // the last line that is not empty
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(text, "```"):
			inside, block, start, with = true, nil, i+2, ""
			skipped = text != "```" || exemption.MatchString(before)
			indent, _, _ = strings.Cut(line, "`")
			if match := substitution.FindStringSubmatch(before); match != nil {
				with = match[1]
			}
		case inside && text == "```":
			inside = false
			if !skipped {
				for _, c := range commandsOf(block, start) {
					c.With = with
					all = append(all, c)
				}
			}
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		}
		if text != "" {
			before = text
		}
	}
	if inside {
		return nil, fmt.Errorf("line %d: the block has no end", start)
	}
	return all, nil
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

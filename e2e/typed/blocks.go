// Package typed reads the commands that a page of documentation shows, so that a test can type them.
//
// A fenced block without a language is typed. A block with prompts ("$ ") has commands and, below each, what it
// prints. A block without prompts is typed as a whole and must succeed. A block whose line before is
// "<!-- not typed: REASON -->" is left out.
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
	Text string
	// Shown is what the page shows below; Shows is false where the command must only succeed.
	Shown string
	Shows bool
}

var exemption = regexp.MustCompile(`^\s*<!-- not typed: \S.* -->$`)

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
	inside, skipped, start := false, false, 0
	before := "" // the last line that is not empty
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(text, "```"):
			inside, block, start = true, nil, i+2
			skipped = text != "```" || exemption.MatchString(before)
		case inside && text == "```":
			inside = false
			if !skipped {
				all = append(all, commandsOf(block, start)...)
			}
		case inside:
			block = append(block, line)
		}
		if text != "" {
			before = line
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

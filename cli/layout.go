package cli

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Layout is how text is laid out for people.
type Layout struct {
	// Columns of the terminal: longer lines are wrapped between words. 0 is no limit.
	Columns int
	// Colour marks headings and states.
	Colour bool
	// Whole lists, of any length.
	Whole bool
}

// laidOut is a writer with a layout.
type laidOut interface{ layout() Layout }

// LayoutOf is the layout of a writer. A terminal has a width, and colours unless NO_COLOR is set or TERM is dumb.
func LayoutOf(out io.Writer) Layout {
	if w, ok := out.(laidOut); ok {
		return w.layout()
	}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Layout{}
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 20 { // a line with so few words cannot be read
		columns = 0
	}
	return Layout{Columns: columns, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Page collects text with a layout.
type Page struct {
	strings.Builder
	Layout Layout
}

func (p *Page) layout() Layout { return p.Layout }

// gap between columns.
const gap = 2

// narrowest is the width to which a column of text is narrowed at most.
const narrowest = 14

// fit narrows the widest columns of text until a line has limit characters. It returns false if no column can be narrowed further.
func fit(rows [][]string, widths []int, limit int) bool {
	total := gap * (len(widths) - 1)
	least := make([]int, len(widths))
	for i, width := range widths {
		total += width
		least[i] = min(width, narrowest)
	}
	for _, row := range rows {
		for i, cell := range row {
			if isCommand(cell) {
				least[i] = widths[i]
			}
			for word := range strings.FieldsSeq(cell) {
				least[i] = max(least[i], utf8.RuneCountInString(word))
			}
		}
	}
	for ; total > limit; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// isCommand: commands are copied, so they are not wrapped.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "kubectl ") || strings.HasPrefix(text, "fairlead ")
}

// wrap breaks text between words. A longer word has a line of its own.
func wrap(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width || isCommand(text) {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// Escape sequences of colours (ECMA-48, SGR).
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// colour is one of these sequences.
var colour = regexp.MustCompile(`\x1b\[(?:0|1|31|32|33)m`)

// colours of states, which are words of datapath, plan and fence.
var colours = []struct {
	sequence string
	words    []string
}{
	{red, []string{"wrong", "invalid", "Unhealthy"}},
	{yellow, []string{"waiting", "waits", "partly", "Fencing", "Fenced", "Unfencing"}},
	{green, []string{"ok", "now", "Healthy"}},
}

func colourOf(cell string) string {
	for _, c := range colours {
		if slices.Contains(c.words, cell) {
			return c.sequence
		}
	}
	return ""
}

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Table aligns columns. Each cell is printable characters, on several lines if the table is wider than the terminal.
type Table struct {
	out  io.Writer
	head bool
	rows [][]string
}

// NewTable returns a table with a line of headings; without headings the first row is an ordinary row.
func NewTable(out io.Writer, head ...string) *Table {
	t := &Table{out: out, head: len(head) > 0}
	if t.head {
		t.Row(head...)
	}
	return t
}

// Row adds a line.
func (t *Table) Row(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Flush writes the table.
func (t *Table) Flush() error {
	layout := LayoutOf(t.out)
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	if layout.Columns > 0 && !fit(t.rows, widths, layout.Columns) && t.head && len(t.rows) > 1 {
		layout.writeBlocks(&text, t.rows)
		t.rows = nil
		if _, err := io.WriteString(t.out, text.String()); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	}
	for i, row := range t.rows {
		layout.writeRow(&text, row, widths, t.head && i == 0)
	}
	t.rows = nil
	if _, err := io.WriteString(t.out, text.String()); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// writeBlocks writes each row as a block of lines, where the terminal is too narrow for the table.
func (l Layout) writeBlocks(out *strings.Builder, rows [][]string) {
	head, label := rows[0], 0
	for _, name := range head[1:] {
		label = max(label, utf8.RuneCountInString(name))
	}
	for i, row := range rows[1:] {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(out, "%s %s\n", l.coloured(head[0], "", true), row[0])
		for j := 1; j < len(row); j++ {
			l.writeRow(out, []string{"", head[j], row[j]}, []int{0, label, max(narrowest, l.Columns-label-2*gap)}, false)
		}
	}
}

func (l Layout) writeRow(out *strings.Builder, row []string, widths []int, head bool) {
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = wrap(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for line := range height {
		padding := 0
		for i, cell := range cells {
			if line < len(cell) && cell[line] != "" {
				out.WriteString(strings.Repeat(" ", padding))
				padding = 0
				out.WriteString(l.coloured(cell[line], row[i], head))
				padding -= utf8.RuneCountInString(cell[line])
			}
			padding += widths[i] + gap
		}
		out.WriteByte('\n')
	}
}

// coloured colours a line of a cell.
func (l Layout) coloured(line, cell string, head bool) string {
	sequence := colourOf(cell)
	if head {
		sequence = bold
	}
	if !l.Colour || sequence == "" {
		return line
	}
	return sequence + line + plain
}

// WriteRows writes rows in columns below their headings.
func WriteRows[T any](out io.Writer, rows []T, cells func(T) []string, head ...string) {
	t := NewTable(out, head...)
	for _, row := range rows {
		t.Row(cells(row)...)
	}
	_ = t.Flush() // Terminal keeps the error
}

// WriteFacts writes names with their values, without empty values.
func WriteFacts(out io.Writer, facts [][2]string) {
	facts = slices.DeleteFunc(facts, func(f [2]string) bool { return f[1] == "" })
	WriteRows(out, facts, func(f [2]string) []string { return f[:] })
}

// WriteList writes a table below a blank line, and says how many rows are left out. Without rows it writes nothing.
func WriteList[T any](out io.Writer, rows []T, cells func(T) []string, head ...string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	WriteRows(out, rows[:Longest(out, len(rows))], cells, head...)
	More(out, len(rows))
}

// WriteGroups is WriteList, but joins rows of a long list that differ in some columns only: a hundred volumes on three nodes are
// three rows. A joined cell has the first of its values.
func WriteGroups[T any](out io.Writer, rows []T, cells func(T) []string, joined []int, head ...string) {
	if len(rows) <= Longest(out, len(rows)) {
		WriteList(out, rows, cells, head...)
		return
	}
	var groups [][][]string // rows of cells with the same values in the other columns
	index := map[string]int{}
	for _, row := range rows {
		values := cells(row)
		others := slices.Clone(values)
		for _, column := range joined {
			others[column] = ""
		}
		key := strings.Join(others, "\x00")
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], values)
	}
	WriteList(out, groups, func(group [][]string) []string {
		row := slices.Clone(group[0])
		for _, column := range joined {
			if !isCommand(row[column]) {
				row[column] = firstOf(group, column)
			}
		}
		return row
	}, head...)
}

func firstOf(rows [][]string, column int) string {
	var values []string
	for _, row := range rows {
		if value := row[column]; value != "-" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return cmp.Or(catalog.FirstOf(values), "-")
}

// widest is the maximum length of a value in a column.
const widest = 40

// Value returns a setting's value on one line; an empty value is shown as "".
func Value(text string) string {
	if text == "" {
		return `""`
	}
	return strings.Join(strings.Fields(text), " ")
}

// Cell returns a value shortened to fit into a column.
func Cell(text string) string {
	runes := []rune(Value(text))
	if len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return string(runes)
}

// List joins names with commas; an empty list is a dash.
func List(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// longestList is the maximum number of lines of a list in a table. -o wide, JSON and YAML have all lines.
const longestList = 20

// Longest is how many of count lines a table shows.
func Longest(out io.Writer, count int) int {
	if LayoutOf(out).Whole {
		return count
	}
	return min(count, longestList)
}

// More says how many of count lines a table leaves out.
func More(out io.Writer, count int) {
	if left := count - Longest(out, count); left > 0 {
		WriteLine(out, "and %d more; -o wide has all", left)
	}
}

// Ago returns the age of a time, or a dash if there is no time.
func Ago(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*t)))
}

// OrDash returns the text, or a dash if the text is empty.
func OrDash(text string) string { return cmp.Or(text, "-") }

// TimeOf returns a time of the API in UTC; nil for the zero time.
func TimeOf(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// CountOrDash returns a count, or a dash for zero.
func CountOrDash(count int) string {
	if count == 0 {
		return "-"
	}
	return fmt.Sprint(count)
}

// Terminal replaces control characters, because text from objects and API servers must not steer a terminal.
// Newlines, tabs and the colours of the layout stay. Commands print without a look at errors: Err has the first one.
type Terminal struct {
	io.Writer
	Layout Layout
	err    error
}

// Err is the first error of writing.
func (t *Terminal) Err() error { return t.err }

func (t *Terminal) layout() Layout { return t.Layout }

func (t *Terminal) Write(text []byte) (int, error) {
	clean := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' || r == '\t' {
				return r
			}
			return printableRune(r)
		}, text)
	}
	var out strings.Builder
	rest := string(text)
	for t.Layout.Colour {
		at := colour.FindStringIndex(rest)
		if at == nil {
			break
		}
		out.WriteString(clean(rest[:at[0]]) + rest[at[0]:at[1]])
		rest = rest[at[1]:]
	}
	out.WriteString(clean(rest))
	if _, err := io.WriteString(t.Writer, out.String()); err != nil {
		t.err = cmp.Or(t.err, fmt.Errorf("writing: %w", err))
		return 0, err
	}
	return len(text), nil
}

// printable returns text on one line, without control characters.
func printable(text string) string { return strings.Map(printableRune, text) }

// WriteLine writes one line, also for values with newlines. A line that is longer than the terminal is wrapped.
func WriteLine(out io.Writer, format string, args ...any) {
	lines := []string{printable(fmt.Sprintf(format, args...))}
	if columns := LayoutOf(out).Columns; columns > 0 {
		lines = foldLine(lines[0], columns)
	}
	fmt.Fprintln(out, strings.Join(lines, "\n"))
}

// foldLine wraps a line. A command at its end has a line of its own, which is not wrapped: it is copied.
func foldLine(line string, columns int) []string {
	if utf8.RuneCountInString(line) <= columns {
		return []string{line}
	}
	if inner := strings.TrimLeft(line, " "); len(inner) < len(line) {
		indent := line[:len(line)-len(inner)]
		lines := foldLine(inner, columns-len(indent))
		for i := range lines {
			lines[i] = indent + lines[i]
		}
		return lines
	}
	text, command, found := strings.Cut(line, ": kubectl ")
	if !found {
		return wrap(line, columns)
	}
	return append(wrap(text+":", columns), "kubectl "+command)
}

func printableRune(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case unicode.IsSpace(r):
		return ' '
	}
	return '?'
}

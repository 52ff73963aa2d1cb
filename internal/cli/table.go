package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table aligns columns. Each cell is one line of printable characters.
type Table struct{ lines *tabwriter.Writer }

// NewTable returns a table with a line of headings; without headings the first row is an ordinary row.
func NewTable(out io.Writer, head ...string) *Table {
	t := &Table{lines: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	if len(head) > 0 {
		t.Row(head...)
	}
	return t
}

// Row adds a line.
func (t *Table) Row(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	fmt.Fprintln(t.lines, strings.Join(cells, "\t"))
}

// Flush writes the table.
func (t *Table) Flush() error {
	if err := t.lines.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
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
	WriteRows(out, rows[:min(len(rows), LongestList)], cells, head...)
	More(out, len(rows))
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

// LongestList is the maximum number of lines of a list in a table. JSON has all lines.
const LongestList = 20

// More says how many of count lines a table leaves out.
func More(out io.Writer, count int) {
	if count > LongestList {
		WriteLine(out, "and %d more; -o json has all", count-LongestList)
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

// WriteJSON writes a document without raw control characters.
func WriteJSON(out io.Writer, value any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if _, err := out.Write(escaped(document.Bytes())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// Terminal replaces control characters, because text from objects and API servers must not steer a terminal.
// Newlines and tabs stay. Commands print without a look at errors: Err has the first one.
type Terminal struct {
	io.Writer
	err error
}

// Err is the first error of writing.
func (t *Terminal) Err() error { return t.err }

func (t *Terminal) Write(text []byte) (int, error) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printableRune(r)
	}, string(text))
	if _, err := io.WriteString(t.Writer, clean); err != nil {
		t.err = cmp.Or(t.err, fmt.Errorf("writing: %w", err))
		return 0, err
	}
	return len(text), nil
}

// printable returns text on one line, without control characters.
func printable(text string) string { return strings.Map(printableRune, text) }

// WriteLine writes exactly one line, also for values with newlines.
func WriteLine(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, printable(fmt.Sprintf(format, args...)))
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

// escaped escapes all control characters of JSON, which itself requires escapes of some only.
func escaped(document []byte) []byte {
	const hex = "0123456789abcdef"
	var out bytes.Buffer
	for _, r := range string(document) {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				out.WriteByte(hex[unit>>shift&0xf])
			}
		}
	}
	return out.Bytes()
}

package cli

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func drawn(layout Layout, rows [][]string, head ...string) string {
	page := &Page{Layout: layout}
	WriteRows(page, rows, func(row []string) []string { return row }, head...)
	return page.String()
}

func TestTableFitsTheTerminal(t *testing.T) {
	rows := [][]string{
		{"pvc-a", "waiting", "server pod share-manager-pvc-a is still on kube-system/storage-net", "kubectl -n longhorn-system describe pod share-manager-pvc-a"},
		{"pvc-b", "ok", "-", "-"},
	}
	head := []string{"VOLUME", "STATE", "WHAT", "NEXT"}
	for _, test := range []struct {
		name   string
		layout Layout
		want   string
	}{
		{"no limit", Layout{}, `
VOLUME  STATE    WHAT                                                                NEXT
pvc-a   waiting  server pod share-manager-pvc-a is still on kube-system/storage-net  kubectl -n longhorn-system describe pod share-manager-pvc-a
pvc-b   ok       -                                                                   -
`},
		{"text is wrapped, commands are not", Layout{Columns: 110}, `
VOLUME  STATE    WHAT                              NEXT
pvc-a   waiting  server pod share-manager-pvc-a    kubectl -n longhorn-system describe pod share-manager-pvc-a
                 is still on
                 kube-system/storage-net
pvc-b   ok       -                                 -
`},
		{"too narrow for a table", Layout{Columns: 40}, `
VOLUME pvc-a
  STATE  waiting
  WHAT   server pod share-manager-pvc-a
         is still on
         kube-system/storage-net
  NEXT   kubectl -n longhorn-system describe pod share-manager-pvc-a

VOLUME pvc-b
  STATE  ok
  WHAT   -
  NEXT   -
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Equal(t, drawn(test.layout, rows, head...), strings.TrimPrefix(test.want, "\n"))
		})
	}
}

func TestStatesHaveColours(t *testing.T) {
	must.Equal(t, drawn(Layout{Colour: true}, [][]string{{"pvc-a", "wrong"}, {"wrong way", "ok"}}, "VOLUME", "STATE"),
		"\x1b[1mVOLUME\x1b[0m     \x1b[1mSTATE\x1b[0m\npvc-a      \x1b[31mwrong\x1b[0m\nwrong way  \x1b[32mok\x1b[0m\n")
}

func TestOnlyOwnColoursReachTheTerminal(t *testing.T) {
	const text = "\x1b[31mred\x1b[0m \x1b[2J\x1b[38;5;1m\x1b]0;title\x07"
	for colour, want := range map[bool]string{true: "\x1b[31mred\x1b[0m ?[2J?[38;5;1m?]0;title?", false: "?[31mred?[0m ?[2J?[38;5;1m?]0;title?"} {
		var out strings.Builder
		terminal := &Terminal{Writer: &out, Layout: Layout{Colour: colour}}
		if _, err := terminal.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		must.Equal(t, out.String(), want)
	}
	// A cell has no colours of its own.
	must.Equal(t, drawn(Layout{Colour: true}, [][]string{{"\x1b[31mred"}}), "?[31mred\n")
}

func TestWholeListsAreShown(t *testing.T) {
	for whole, want := range map[bool]int{false: longestList + 3, true: 100 + 2} { // a blank line, headings, "and 80 more"
		page := &Page{Layout: Layout{Whole: whole}}
		WriteList(page, make([]int, 100), func(int) []string { return []string{"x"} }, "ROW")
		must.Equal(t, strings.Count(page.String(), "\n"), want)
	}
}

func TestLongLinesAreWrapped(t *testing.T) {
	page := &Page{Layout: Layout{Columns: 20}}
	WriteLine(page, "Note: %s", "the webhooks are not Ready: nothing is patched")
	WriteLine(page, "Next: %s", "kubectl -n fairlead-system get pods")
	must.Equal(t, page.String(), "Note: the webhooks\nare not Ready:\nnothing is patched\nNext:\nkubectl -n fairlead-system get pods\n")
}

func TestDocuments(t *testing.T) {
	value := map[string]any{"name": "pvc-a", "nodes": []string{}}
	for format, want := range map[string]string{OutputJSON: "{\n  \"name\": \"pvc-a\",\n  \"nodes\": []\n}\n", OutputYAML: "name: pvc-a\nnodes: []\n"} {
		var out strings.Builder
		must.True(t, WriteDocument(&out, format, value) == nil, "not written")
		must.Equal(t, out.String(), want)
	}
}

func TestWrappedLineKeepsItsIndent(t *testing.T) {
	must.Equal(t, foldLine("  refused: a long message that does not fit", 24), []string{"  refused: a long", "  message that does not", "  fit"})
}

package beside

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/invariants"
)

// zoneTable is what was seen, side by side, which docs/reference/longhorn.md sums up.
type zoneTable struct {
	rows  []zoneRow
	cells map[zoneCell]string
}

type zoneCell struct {
	row       string
	volumes   string
	installed bool
}

func (t *zoneTable) enter(row zoneRow, volumes string, installed bool, inUse []string, r restarts, when string) {
	if t.cells == nil {
		t.cells = map[zoneCell]string{}
	}
	if !slices.ContainsFunc(t.rows, func(o zoneRow) bool { return o.name() == row.name() }) {
		t.rows = append(t.rows, row)
	}
	text := fmt.Sprintf("%s; %s", r, when)
	if len(inUse) > 0 {
		text = "**in use: " + strings.Join(inUse, ", ") + "**; " + text
	}
	t.cells[zoneCell{row.name(), volumes, installed}] = text
}

func (t *zoneTable) String() string {
	lines := []string{
		"| changed | attached | Longhorn alone | with Fairlead | none attached: alone | with Fairlead |",
		"| --- | --- | --- | --- | --- | --- |",
	}
	for _, row := range t.rows {
		line := fmt.Sprintf("| `%s` | %s |", strings.Join(row.settings, "`, `"), strings.ToUpper(strings.Join(row.attached, ", ")))
		for _, volumes := range []string{zoneAttached, zoneNone} {
			for _, installed := range []bool{false, true} {
				line += " " + t.cells[zoneCell{row.name(), volumes, installed}] + " |"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const (
	zoneAttached = "attached"
	zoneNone     = "none"
)

// String says "all" where each kind of idle component was restarted as often.
func (r restarts) String() string {
	kinds := slices.Sorted(maps.Keys(r))
	all := len(kinds) == 4 && !slices.Contains(kinds, invariants.ShareManager)
	var parts []string
	for _, kind := range kinds {
		all = all && r[kind] == r[kinds[0]]
		parts = append(parts, fmt.Sprintf("%s %d", kind, r[kind]))
	}
	switch {
	case len(parts) == 0:
		return "nothing"
	case all:
		return fmt.Sprintf("all %d", r[kinds[0]])
	}
	return strings.Join(parts, ", ")
}

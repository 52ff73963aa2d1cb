package beside

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Mark is a point in the API server's record.
type Mark int

// Mark returns the point that the record has reached.
func (c *Cluster) Mark() (Mark, error) {
	writes, err := c.ReadWrites()
	return Mark(len(writes)), err
}

// Since returns the writes after a point, those that keep accepts.
func (c *Cluster) Since(from Mark, keep func(sandbox.Write) bool) ([]sandbox.Write, error) {
	writes, err := c.ReadWrites()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(writes[from:]), func(w sandbox.Write) bool { return !keep(w) }), nil
}

// ByFairlead are writes of Fairlead's own accounts.
func ByFairlead(w sandbox.Write) bool {
	return strings.HasPrefix(w.User, "system:serviceaccount:fairlead-system:")
}

// ByLonghorn are writes of Longhorn's account.
func ByLonghorn(w sandbox.Write) bool { return w.Writer() == serviceAccount }

// Fights returns the objects that Fairlead and Longhorn changed in turns, more often than
// one answer to a write of the other.
func Fights(writes []sandbox.Write) []string {
	turns, last := map[string][]string{}, map[string]string{}
	for _, w := range writes {
		if !w.Changed || !ByFairlead(w) && !ByLonghorn(w) {
			continue
		}
		object := w.Group + " " + w.Object()
		if last[object] != w.Writer() {
			turns[object] = append(turns[object], w.String())
			last[object] = w.Writer()
		}
	}
	var fights []string
	for _, object := range slices.Sorted(maps.Keys(turns)) {
		if len(turns[object]) > 3 {
			fights = append(fights, fmt.Sprintf("%s was written in turns:\n  %s", object, strings.Join(turns[object], "\n  ")))
		}
	}
	return fights
}

// AppliedValues are the values that status.applied of a setting took, and who wrote each.
func AppliedValues(writes []sandbox.Write, setting string) []string {
	var values []string
	last := ""
	for _, w := range writes {
		if w.Object() != "settings/"+setting || w.Code >= 300 {
			continue
		}
		var answer struct {
			Status struct{ Applied bool }
		}
		if w.Group != longhorn.GroupVersion.Group || json.Unmarshal(w.Response, &answer) != nil {
			continue // Fairlead has settings of its own
		}
		if value := fmt.Sprint(answer.Status.Applied); value != last {
			values = append(values, value+" by "+w.Writer())
			last = value
		}
	}
	return values
}

// Count counts writes by writer, verb and object.
func Count(writes []sandbox.Write) []string {
	counts := map[string]int{}
	for _, w := range writes {
		counts[fmt.Sprintf("%s %s %s %s/%s", w.Writer(), w.Verb, w.Group, w.Resource, w.Name)]++
	}
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d × %s", counts[line], line))
	}
	return lines
}

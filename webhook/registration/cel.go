package registration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// marked, in CEL: Fairlead decides on the attachment.
var Marked = fmt.Sprintf("object.metadata.?labels[?'%s'].orValue('') == 'true'", fence.JudgedLabel)

// protectedAttacher, in CEL, is profiles.Profile.Serves.
func ProtectedAttacher(storages []profiles.Profile) string {
	var suffixes []string
	for _, s := range storages {
		suffixes = append(suffixes, s.DriverSuffixes...)
	}
	slices.Sort(suffixes)
	return Quoted(slices.Compact(suffixes)...) + ".exists(s, object.spec.attacher == s || object.spec.attacher.endsWith('.' + s))"
}

// outOfService, in CEL: a node has the taint, whatever its value and effect.
func OutOfService(node string) string {
	return fmt.Sprintf("%s.?spec.?taints.orValue([]).exists(t, t.key == '%s')", node, fence.OutOfServiceTaint)
}

// quoted lists words in CEL.
func Quoted[S ~string](words ...S) string {
	var list []string
	for _, w := range words {
		list = append(list, fmt.Sprintf("'%s'", w))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

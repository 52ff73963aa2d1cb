package webhook

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/validators"
)

// Regression: a review of 180 KiB with 60,000 problems took minutes.
func TestOnlyTheFirstProblemsAreListed(t *testing.T) {
	for n, want := range map[int]struct {
		listed   int
		warnings []string
	}{
		1:   {1, nil},
		100: {100, nil},
		250: {100, []string{"fairlead: 150 more problems are not listed"}},
	} {
		var problems field.ErrorList
		for i := range n {
			problems = append(problems, field.Invalid(field.NewPath("spec").Index(i), i, fmt.Sprint(i)))
		}
		d := fromVerdict(validators.Verdict{Problems: problems}, schema.GroupResource{}, "x")
		if d.Denial == nil || len(d.Denial.Details.Causes) != want.listed || !slices.Equal(d.Warnings, want.warnings) {
			t.Errorf("%d problems: got %+v, %q", n, d.Denial, d.Warnings)
		}
	}
}

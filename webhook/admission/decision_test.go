package admission

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/validators"
)

// Regression: a review of 180 KiB with 60,000 problems took minutes.
func TestOnlyFirstProblemsAreListed(t *testing.T) {
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
		d := FromVerdict(validators.Verdict{Problems: problems}, metav1.GroupVersionResource{}, "x")
		must.Check(t, d.Denial != nil && len(d.Denial.Details.Causes) == want.listed && slices.Equal(d.Warnings, want.warnings),
			"%d problems: got %+v, %q", n, d.Denial, d.Warnings)
	}
}

package validators

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMisspelledAnnotations(t *testing.T) {
	for name, test := range map[string]struct {
		keys, want string // separated by spaces; want has the key, and the one that was meant
	}{
		"not Fairlead's":  {"example.com/opt-out volume-network not-fairlead.io/x", ""},
		"well written":    {"fairlead.io/volume-network fairlead.io/opt-out fairlead.io/network-namespace", ""},
		"a letter short":  {"fairlead.io/volume-netwrk", "volume-netwrk volume-network"},
		"singular":        {"fairlead.io/volume-address", "volume-address volume-addresses"},
		"in capitals":     {"fairlead.io/Opt-Out", "Opt-Out opt-out"},
		"short and near":  {"fairlead.io/volume-max", "volume-max volume-mac"},
		"several, sorted": {"fairlead.io/optout fairlead.io/opt-outs", "opt-outs opt-out optout opt-out"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for pair := range slices.Chunk(strings.Fields(test.want), 2) {
				want = append(want, "annotation fairlead.io/"+pair[0]+" is unknown to Fairlead and has no effect: did you mean fairlead.io/"+pair[1]+"?")
			}
			must.Equal(t, CheckAnnotations(slices.Values(strings.Fields(test.keys))), want)
		})
	}
	const none = "annotation fairlead.io/color is unknown to Fairlead and has no effect: Fairlead reads fairlead.io/volume-network, fairlead.io/volume-addresses, fairlead.io/volume-mac, fairlead.io/opt-out, fairlead.io/no-automatic-taint"
	must.Equal(t, CheckAnnotations(slices.Values([]string{"fairlead.io/color"})), []string{none}, "nothing similar")
}

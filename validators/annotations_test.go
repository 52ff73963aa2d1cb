package validators

import (
	"maps"
	"slices"
	"testing"
)

func TestMisspelledAnnotations(t *testing.T) {
	const unknown = " is unknown to Fairlead and has no effect: "
	for name, test := range map[string]struct {
		keys []string
		want []string
	}{
		"not Fairlead's":  {[]string{"example.com/opt-out", "volume-network", "not-fairlead.io/x"}, nil},
		"well written":    {[]string{"fairlead.io/volume-network", "fairlead.io/opt-out", "fairlead.io/network-namespace"}, nil},
		"a letter short":  {[]string{"fairlead.io/volume-netwrk"}, []string{"annotation fairlead.io/volume-netwrk" + unknown + "did you mean fairlead.io/volume-network?"}},
		"singular":        {[]string{"fairlead.io/volume-address"}, []string{"annotation fairlead.io/volume-address" + unknown + "did you mean fairlead.io/volume-addresses?"}},
		"without dashes":  {[]string{"fairlead.io/optout"}, []string{"annotation fairlead.io/optout" + unknown + "did you mean fairlead.io/opt-out?"}},
		"in capitals":     {[]string{"fairlead.io/Opt-Out"}, []string{"annotation fairlead.io/Opt-Out" + unknown + "did you mean fairlead.io/opt-out?"}},
		"short and near":  {[]string{"fairlead.io/volume-max"}, []string{"annotation fairlead.io/volume-max" + unknown + "did you mean fairlead.io/volume-mac?"}},
		"nothing like it": {[]string{"fairlead.io/color"}, []string{"annotation fairlead.io/color" + unknown + "Fairlead reads fairlead.io/volume-network, fairlead.io/volume-addresses, fairlead.io/volume-mac, fairlead.io/opt-out, fairlead.io/no-automatic-taint"}},
		"several, sorted": {[]string{"fairlead.io/optout", "fairlead.io/opt-outs"}, []string{
			"annotation fairlead.io/opt-outs" + unknown + "did you mean fairlead.io/opt-out?",
			"annotation fairlead.io/optout" + unknown + "did you mean fairlead.io/opt-out?",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			for _, key := range test.keys {
				annotations[key] = "x"
			}
			if got := CheckAnnotations(maps.Keys(annotations)); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

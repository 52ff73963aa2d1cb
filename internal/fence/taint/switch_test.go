package taint

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestOnlyFalseSwitchesOff(t *testing.T) {
	for value, off := range map[string]bool{"false": true, " False\n": true, "true": false, "": false, "no": false} {
		if got := IsSwitchedOff(map[string]string{SwitchKey: value}); got != off {
			t.Errorf("%q switches off: %t", value, got)
		}
	}
	must.Check(t, !IsSwitchedOff(nil), "a missing ConfigMap switches off")
}

package catalog

import "testing"

func TestLimits(t *testing.T) {
	const form = "must be a whole number from 0 to 2147483647"
	for _, name := range []Name{ReplicaRebuildLimit, BackingImageLimit} {
		checkSpellings(t, name, map[string]spelled{
			"off":                         {value: "0", normal: "0"},
			"zeros":                       {value: "05", normal: "5"},
			"a sign":                      {value: "+5", normal: "5"},
			"none, from below":            {value: "-0", normal: "0"},
			"less than none":              {value: "-1", problem: form},
			"a fraction":                  {value: "5.0", problem: form},
			"in hexadecimal":              {value: "0x5", problem: form},
			"with an underscore":          {value: "1_000", problem: form},
			"more than a number can hold": {value: "99999999999999999999", problem: form},
			"empty":                       {value: "", problem: form},
		})
	}
}

// Nothing is built with them, so nothing is restarted for them.
func TestWhatAppliesAtOnceToNoPod(t *testing.T) {
	for _, name := range []Name{ReplicaRebuildLimit, BackingImageLimit, DisableSnapshotPurge} {
		if d, _ := Lookup(string(name)); d.Gate != AtOnce || d.Trait != "" || d.Wants != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

package settings

import (
	"testing"
	"time"
	"unicode/utf8"
)

func TestAnOverrideHoldsForOneValueAndReason(t *testing.T) {
	o := Override{By: "alice", Reason: "the rack burns", Value: "20", At: noon}
	for name, test := range map[string]struct {
		annotations map[string]string
		value       string
		holds       bool
	}{
		"asked and let pass":        {map[string]string{OverrideAnnotation: o.Reason, OverriddenAnnotation: o.Text()}, "20", true},
		"another value":             {map[string]string{OverrideAnnotation: o.Reason, OverriddenAnnotation: o.Text()}, "21", false},
		"another reason":            {map[string]string{OverrideAnnotation: "because", OverriddenAnnotation: o.Text()}, "20", false},
		"taken back":                {map[string]string{OverriddenAnnotation: o.Text()}, "20", false},
		"not let pass":              {map[string]string{OverrideAnnotation: o.Reason}, "20", false},
		"without a reason":          {map[string]string{OverrideAnnotation: "", OverriddenAnnotation: Override{Value: "20"}.Text()}, "20", false},
		"a record nobody can read":  {map[string]string{OverrideAnnotation: o.Reason, OverriddenAnnotation: "{"}, "20", false},
		"a record of another shape": {map[string]string{OverrideAnnotation: o.Reason, OverriddenAnnotation: `["20"]`}, "20", false},
		"nothing":                   {nil, "20", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, holds := ReadOverride(test.annotations, test.value)
			if holds != test.holds || holds && got != o {
				t.Fatalf("got %+v, %t", got, holds)
			}
		})
	}
}

func TestAnOverrideHoldsForADay(t *testing.T) {
	o := Override{At: noon}
	for after, expired := range map[time.Duration]bool{0: false, OverrideLifetime - time.Nanosecond: false, OverrideLifetime: true, 1000 * time.Hour: true} {
		if got := o.Expired(noon.Add(after)); got != expired {
			t.Errorf("after %s: %v", after, got)
		}
	}
	if !(Override{}).Expired(noon) {
		t.Error("one of no known time holds")
	}
}

// Whatever annotations say: an override that holds was recorded for this value
// and this reason, and reads back as it was written.
func FuzzOverride(f *testing.F) {
	f.Add("the rack burns", `{"by":"alice","reason":"the rack burns","value":"20","at":"2026-01-01T12:00:00Z"}`, "20")
	f.Add("", `{"value":"20"}`, "20")
	f.Add("x", `{"REASON":"x","value":"20","value":"21"}`, "21")
	f.Add("\xff", "{}", "")
	f.Fuzz(func(t *testing.T, reason, record, value string) {
		annotations := map[string]string{OverrideAnnotation: reason, OverriddenAnnotation: record}
		if o, holds := ReadOverride(annotations, value); holds && (o.Reason != reason || o.Value != value || reason == "") {
			t.Fatalf("holds: %+v", o)
		}
		written := Override{By: "alice", Reason: reason, Value: value, At: time.Unix(1_000_000, 0).UTC()}
		annotations[OverriddenAnnotation] = written.Text()
		got, holds := ReadOverride(annotations, value)
		isText := utf8.ValidString(reason) && utf8.ValidString(value) // as all that the API has is
		if isText && holds != (reason != "") || holds && got != written {
			t.Fatalf("wrote %+v, read %+v, %t", written, got, holds)
		}
	})
}

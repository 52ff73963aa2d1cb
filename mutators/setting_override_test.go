package mutators

import (
	"encoding/json"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/fairlead-io/fairlead/settings"
)

func TestOverridesAreWrittenDown(t *testing.T) {
	facts := OverrideFacts{User: "jane", Now: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	record := func(by, reason, value string) string {
		return settings.Override{By: by, Reason: reason, Value: value, At: facts.Now.Truncate(time.Second)}.Text()
	}
	object := func(value, reason, record string) map[string]any {
		annotations := map[string]string{}
		if reason != "" {
			annotations[settings.OverrideAnnotation] = reason
		}
		if record != "" {
			annotations[settings.OverriddenAnnotation] = record
		}
		metadata := map[string]any{"name": "priority-class"}
		if len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
		return map[string]any{"metadata": metadata, "value": value}
	}
	for name, test := range map[string]struct {
		is, was map[string]any
		want    string // the record that is stored
	}{
		"nobody asks":                             {object("a", "", ""), object("b", "", ""), ""},
		"asked for, with the value":               {object("a", "disk dies", ""), object("b", "", ""), record("jane", "disk dies", "a")},
		"asked for at creation":                   {object("a", "disk dies", ""), nil, record("jane", "disk dies", "a")},
		"of the value as it is stored":            {object(" a ", "disk dies", ""), nil, record("jane", "disk dies", "a")},
		"asked for later":                         {object("a", "disk dies", ""), object("a", "", ""), record("jane", "disk dies", "a")},
		"a record forged":                         {object("a", "disk dies", record("root", "disk dies", "a")), object("a", "", ""), record("jane", "disk dies", "a")},
		"as it was, by somebody else":             {object("a", "disk dies", record("root", "disk dies", "a")), object("a", "disk dies", record("root", "disk dies", "a")), record("root", "disk dies", "a")},
		"another value: the override is closed":   {object("c", "disk dies", record("root", "disk dies", "a")), object("a", "disk dies", record("root", "disk dies", "a")), record("root", "disk dies", "a")},
		"another value, asked for anew":           {object("c", "fire", record("root", "disk dies", "a")), object("a", "disk dies", record("root", "disk dies", "a")), record("jane", "fire", "c")},
		"another reason: another override":        {object("a", "fire", record("root", "disk dies", "a")), object("a", "disk dies", record("root", "disk dies", "a")), record("jane", "fire", "a")},
		"the request is closed, the record stays": {object("a", "", record("root", "disk dies", "a")), object("a", "disk dies", record("root", "disk dies", "a")), record("root", "disk dies", "a")},
		"replaced without the record":             {object("a", "", ""), object("a", "", record("root", "disk dies", "a")), record("root", "disk dies", "a")},
		"asked for again after it was closed":     {object("a", "disk dies", record("root", "disk dies", "a")), object("a", "", record("root", "disk dies", "a")), record("root", "disk dies", "a")}, // and refused
	} {
		t.Run(name, func(t *testing.T) {
			text := string(encode(t, test.is))
			var old *Setting
			if test.was != nil {
				o := view[Setting](t, string(encode(t, test.was)))
				old = &o
			}
			result := MutateSetting(view[Setting](t, text), old, true, facts)
			stored := []byte(text)
			if len(result.Patch) > 0 {
				patch, err := jsonpatch.DecodePatch(encode(t, result.Patch))
				if err != nil {
					t.Fatal(err)
				}
				if stored, err = patch.Apply(stored); err != nil {
					t.Fatal(err)
				}
			}
			var after Setting
			if err := json.Unmarshal(stored, &after); err != nil {
				t.Fatal(err)
			}
			if got := after.Metadata.Annotations[settings.OverriddenAnnotation]; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if _, asked := after.Metadata.Annotations[settings.OverrideAnnotation]; name == "another value: the override is closed" && asked {
				t.Error("it is still asked for")
			}
			if again := MutateSetting(after, old, true, facts); len(again.Patch) > 0 {
				t.Errorf("a second time it patches %s", encode(t, again.Patch))
			}
		})
	}
}

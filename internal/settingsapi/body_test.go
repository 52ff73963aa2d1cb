package settingsapi

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// An accepted body must mean the same to every JSON parser.
func FuzzDecodeChange(f *testing.F) {
	for _, seed := range []string{
		`{"value": "kube-system/storage-net"}`, `{"value": ""}`, `{"value": null}`, `{}`, `[]`, `null`, `"x"`, ``,
		`{"value": "x", "value": "y"}`, `{"VALUE": "x"}`, `{"value": "x"} {}`, `{"value": "\ud800"}`, "{\"value\": \"\xff\"}",
		`{"value": "{\"v1\": \"12\"}"}`, `{"value": "x", "other": 1}`, strings.Repeat(`{"value":`, 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		value, err := decodeChange(strings.NewReader(body))
		if err != nil {
			must.Equal(t, value, "", "value of %q, refused with %v", body, err)
			return
		}
		must.Check(t, utf8.ValidString(value), "%q: %q is not UTF-8", body, value)
		var other map[string]string
		if err := json.Unmarshal([]byte(body), &other); err != nil || len(other) != 1 || other["value"] != value {
			t.Errorf("%q: got %q, encoding/json has %v, %v", body, value, other, err)
		}
	})
}

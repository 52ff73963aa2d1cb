package settingsapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestEverySettingSaysWhatItAllows(t *testing.T) {
	for _, d := range catalog.All() {
		phrase := d.Allowed()
		if phrase == "" || strings.ContainsAny(phrase, "\x00\n") || strings.Contains(phrase, `\x00`) {
			t.Errorf("%s: %q", d.Name, phrase)
		}
	}
}

func TestListsAreNeverNull(t *testing.T) {
	d, _ := catalog.Lookup(string(catalog.StorageNetwork))
	text, err := json.Marshal(Describe(cluster.SettingState{Definition: d}, storage.Longhorn()))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`{"applied":false,"name":"storage-network","value":""`, `"blockers":[]`, `"namespace":"longhorn-system"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

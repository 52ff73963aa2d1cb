package describe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestListsAreNeverNull(t *testing.T) {
	d, _ := catalog.Lookup(string(catalog.StorageNetwork))
	text, err := json.Marshal(Setting(State{Definition: d}, objects.Longhorn))
	must.Do(t, err)
	for _, part := range []string{`{"applied":false,"name":"storage-network","value":""`, `"blockers":[]`, `"namespace":"longhorn-system"`} {
		must.Check(t, strings.Contains(string(text), part), "%s is not in %s", part, text)
	}
}

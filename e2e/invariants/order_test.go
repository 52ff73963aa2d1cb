package invariants

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Regression: a deletion of an object that is being deleted answers with the version from before, and was replayed too early.
func TestDeletionIsNotMovedBack(t *testing.T) {
	pod := func(version string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"longhorn-system","name":"p","resourceVersion":"` + version + `"}}`)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var verbs []string
	for _, e := range inOrder([]sandbox.Write{
		{At: at, Verb: "create", Resource: "pods", Name: "p", Code: 201, Response: pod("1")},
		{At: at, Verb: "patch", Resource: "pods", Name: "q", Code: 200, Response: pod("5")},
		{At: at, Verb: "delete", Resource: "pods", Name: "p", Code: 200, Response: pod("1")},
	}) {
		verbs = append(verbs, e.Verb)
	}
	must.Equal(t, verbs, []string{"create", "patch", "delete"})
}

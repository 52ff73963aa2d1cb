package mutators

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	storageNet = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	teamNet    = multus.VolumeAttachment(multus.Network{Namespace: "team-x", Name: "nfs"})
	inLonghorn = longhorn.DefaultNames()
	backupNet  = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "backup-net"}, Interface: "lhnet2"}
)

// ruling is the expected Result, with the patch as JSON.
type ruling struct {
	outcome        Outcome
	reason, detail string
	patch          string
}

func (want ruling) check(t *testing.T, name string, got Result, warnings ...string) {
	t.Helper()
	have := ruling{got.Outcome, got.Reason, got.Detail, ""}
	if len(got.Patch) > 0 {
		have.patch = string(encode(t, got.Patch))
	}
	must.Check(t, have == want, "%s:\ngot  %+v\nwant %+v", name, have, want)
	must.Check(t, slices.Equal(got.Warnings, warnings), "%s: warnings %q, want %q", name, got.Warnings, warnings)
	must.Check(t, (got.Outcome == Mutated) == (len(got.Patch) > 0), "%s: %s with %d operations", name, got.Outcome, len(got.Patch))
}

// view decodes an object as a rule reads it.
func view[V any](t rapid.TB, object string) V {
	t.Helper()
	var v V
	err := json.Unmarshal([]byte(object), &v)
	must.True(t, err == nil, "%s: %v", object, err)
	return v
}

func encode(t rapid.TB, value any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	must.Do(t, err)
	return bytes.TrimSpace(out.Bytes())
}

// apply the patch of a result to an object.
func apply(t rapid.TB, object []byte, r Result) []byte {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(encode(t, r.Patch))
	must.Do(t, err)
	after, err := patch.Apply(object)
	must.True(t, err == nil, "%s: applying %s: %v", object, encode(t, r.Patch), err)
	return after
}

// checkMinimal checks invariant 9 for one object: the patch applies, the rule changes nothing afterwards, and only the
// touched fields have changed.
func checkMinimal[V any](t rapid.TB, object map[string]any, rule func(V) Result, touched ...[]string) {
	t.Helper()
	before := encode(t, object)
	result := rule(view[V](t, string(before)))
	if result.Outcome != Mutated {
		must.True(t, len(result.Patch) == 0, "%s: %s with a patch", before, result.Outcome)
		return
	}
	after := apply(t, before, result)
	again := rule(view[V](t, string(after)))
	must.True(t, again.Outcome == Unchanged && (again.Reason == ReasonUpToDate || again.Reason == ReasonNoNetwork), "%s: again: %+v", after, again)
	was, is := view[map[string]any](t, string(before)), view[map[string]any](t, string(after))
	for _, path := range touched {
		prune(was, path)
		prune(is, path)
	}
	must.True(t, reflect.DeepEqual(was, is), "other fields changed:\n%s\n%s", before, after)
}

// prune removes a field, and its map if the map is empty then.
func prune(object map[string]any, path []string) {
	inner, ok := object[path[0]].(map[string]any)
	if len(path) > 1 && ok {
		prune(inner, path[1:])
	}
	if len(path) == 1 || ok && len(inner) == 0 {
		delete(object, path[0])
	}
}

func TestAnnotationKeysAreEscapedInPointers(t *testing.T) {
	got := annotate("/metadata", true, "a~b/c", "v")
	must.True(t, got.Operation == "add" && got.Path == "/metadata/annotations/a~0b~1c", "got %s %s", got.Operation, got.Path)
}

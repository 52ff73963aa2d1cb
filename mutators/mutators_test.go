package mutators

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	storageNet = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	teamNet    = storage.VolumeAttachment(storage.Network{Namespace: "team-x", Name: "nfs"})
	inLonghorn = Interfaces{Names: storage.Longhorn().Interfaces(), Namespace: "longhorn-system"}
	backupNet  = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "backup-net"}, Interface: "lhnet2"}
)

// ruling is what is asserted of a Result, with the patch as it goes over the wire.
type ruling struct {
	outcome        Outcome
	reason, detail string
	patch          string
}

func (want ruling) check(t *testing.T, got Result) {
	t.Helper()
	have := ruling{got.Outcome, got.Reason, got.Detail, ""}
	if len(got.Patch) > 0 {
		have.patch = string(encode(t, got.Patch))
	}
	if have != want {
		t.Fatalf("got  %+v\nwant %+v", have, want)
	}
	if got.Warnings != nil {
		t.Fatalf("warnings that nobody expects: %q", got.Warnings)
	}
	if (got.Outcome == Mutated) != (len(got.Patch) > 0) {
		t.Fatalf("%s with %d operations", got.Outcome, len(got.Patch))
	}
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// view decodes an object as a rule reads it.
func view[V any](t tester, object string) V {
	t.Helper()
	var v V
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return v
}

func encode(t tester, value any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatalf("%v", err)
	}
	return bytes.TrimSpace(out.Bytes())
}

// checkMinimal holds invariant 9 for one object: the patch applies, the rule
// asks for nothing more afterwards, and but for touched nothing has changed.
func checkMinimal[V any](t tester, object map[string]any, rule func(V) Result, touched ...[]string) {
	t.Helper()
	before := encode(t, object)
	result := rule(view[V](t, string(before)))
	if result.Outcome != Mutated {
		if len(result.Patch) > 0 {
			t.Fatalf("%s: %s with a patch", before, result.Outcome)
		}
		return
	}
	patch, err := jsonpatch.DecodePatch(encode(t, result.Patch))
	if err != nil {
		t.Fatalf("%s: %v", before, err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("%s: applying %s: %v", before, encode(t, result.Patch), err)
	}
	if again := rule(view[V](t, string(after))); again.Outcome != Unchanged || again.Reason != ReasonAsItShouldBe && again.Reason != ReasonNoNetwork {
		t.Fatalf("%s: again: %+v", after, again)
	}
	was, is := view[map[string]any](t, string(before)), view[map[string]any](t, string(after))
	for _, path := range touched {
		prune(was, path)
		prune(is, path)
	}
	if !reflect.DeepEqual(was, is) {
		t.Fatalf("other fields changed:\n%s\n%s", before, after)
	}
}

// prune removes a field, and the map that held it when that leaves it empty.
func prune(object map[string]any, path []string) {
	if list, ok := object[path[0]].([]any); ok && len(path) > 1 && len(list) > 0 {
		prune(list[0].(map[string]any), path[2:]) // of a list only the first is touched
		return
	}
	inner, ok := object[path[0]].(map[string]any)
	if len(path) > 1 && ok {
		prune(inner, path[1:])
	}
	if len(path) == 1 || ok && len(inner) == 0 {
		delete(object, path[0])
	}
}

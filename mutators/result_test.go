package mutators

import "testing"

func TestAnnotationKeysAreEscapedInPointers(t *testing.T) {
	got := annotate("/metadata", true, "a~b/c", "v")
	if want := "/metadata/annotations/a~0b~1c"; got.Operation != "add" || got.Path != want {
		t.Fatalf("got %s %s, want add %s", got.Operation, got.Path, want)
	}
}

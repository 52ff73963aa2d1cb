package compare

import (
	"reflect"
	"testing"
)

func TestDeploymentsAreWrittenInAnyOrder(t *testing.T) {
	var got []any
	for _, text := range []string{"update deployments/c", "update deployments/b", "update daemonsets/a", "update deployments/d", "update deployments/a"} {
		got = inAnyOrder(append(got, text), "update deployments/")
	}
	want := []any{"update deployments/b", "update deployments/c", "update daemonsets/a", "update deployments/a", "update deployments/d"}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

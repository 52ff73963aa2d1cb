//go:build linux

package nodes

import "testing"

func TestLonghorn(t *testing.T) {
	ctx, c := start(t)
	if err := c.InstallLonghorn(ctx); err != nil {
		t.Fatal(err)
	}
}

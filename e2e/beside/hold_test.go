package beside

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// hold keeps a cluster for looking at it, if BESIDE_HOLD is set, until the file in its
// folder is removed that is named.
func hold(t *testing.T, c *Cluster) {
	if os.Getenv("BESIDE_HOLD") == "" {
		return
	}
	file := c.Dir + "/hold"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Error(err)
		return
	}
	fmt.Fprintf(os.Stderr, "holding the cluster until %s is removed\n", file)
	for {
		if _, err := os.Stat(file); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

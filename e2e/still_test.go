package e2e

import (
	"fmt"
	"time"
)

// comesToRest wants that nobody writes any more: versions stay as they are for so long.
func (c *cluster) comesToRest(what string, long time.Duration, versions func() string) {
	c.t.Helper()
	c.eventually(what+" to come to rest", 20*time.Second, func() error {
		before := versions()
		time.Sleep(long)
		if after := versions(); after != before {
			return fmt.Errorf("somebody writes:\n%s\n%s", before, after)
		}
		return nil
	})
}

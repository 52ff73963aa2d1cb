//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// beat is the command of a workload that writes, syncs and reads back a line several times a second: the time in
// milliseconds, and what went wrong.
const beat = `while :; do
  now=$(date +%s%N | cut -c1-13)
  { echo $now >>/data/beat && sync /data/beat && tail -n1 /data/beat >/dev/null; } 2>/tmp/problem || echo "error $(cat /tmp/problem)" >>/data/errors
  usleep 200000
done`

// beats are the times that workloads have written to a volume.
type beats struct{ times []time.Time }

// readBeats reads what workloads with the command beat wrote, by one of them. I/O errors fail the test.
func (c *Cluster) readBeats(ctx context.Context, t *testing.T, workload string) beats {
	t.Helper()
	errors, err := c.Shell(ctx, workload, "cat /data/errors 2>/dev/null || true")
	must(t, err)
	if errors != "" {
		t.Errorf("%s had I/O errors:\n%s", workload, errors)
	}
	lines, err := c.Shell(ctx, workload, "cat /data/beat")
	must(t, err)
	var b beats
	for line := range strings.Lines(lines) {
		milliseconds, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Errorf("%s wrote a line %q that is no time", workload, line)
			continue
		}
		b.times = append(b.times, time.UnixMilli(milliseconds))
	}
	return b
}

// longestPause between two writes after a time.
func (b beats) longestPause(since time.Time) (longest time.Duration) {
	last := since
	for _, at := range b.times {
		if at.Before(since) {
			continue
		}
		longest, last = max(longest, at.Sub(last)), at
	}
	return longest
}

// waitBeat waits until a workload writes.
func (c *Cluster) waitBeat(ctx context.Context, t *testing.T, workload string) {
	t.Helper()
	since := time.Now()
	must(t, eventually.Until(ctx, workload+" to write", workloadTimeout, func() error {
		line, err := c.Shell(ctx, workload, "tail -n1 /data/beat")
		if err != nil {
			return err
		}
		milliseconds, err := strconv.ParseInt(line, 10, 64)
		if err != nil || time.UnixMilli(milliseconds).Before(since) {
			return fmt.Errorf("it wrote %q last", line)
		}
		return nil
	}))
}

//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// beat is the command of a workload that writes, syncs and reads back the machine's uptime several times a second. Each
// pod has a file: appends of two NFS clients are not atomic. I/O errors are in the file errors.
const beat = `while :; do
  read now rest </proc/uptime
  { echo $now | dd of=/data/beat-$(hostname) oflag=append conv=notrunc,fsync && tail -n1 /data/beat-$(hostname); } >/dev/null 2>/tmp/problem || echo "at $now: $(cat /tmp/problem)" >>/data/errors
  usleep 200000
done`

// uptime of the machine, and so of all pods.
func uptime(t *testing.T) time.Duration {
	t.Helper()
	content, err := os.ReadFile("/proc/uptime")
	must(t, err)
	now, err := seconds(strings.Fields(string(content))[0])
	must(t, err)
	return now
}

func seconds(text string) (time.Duration, error) {
	value, err := strconv.ParseFloat(text, 64)
	return time.Duration(value * float64(time.Second)), err
}

// beats are the times, by the machine's uptime, at which workloads have written to a volume.
type beats []time.Duration

// readBeats reads what workloads with the command beat wrote, by one of them. I/O errors fail the test.
func (c *Cluster) readBeats(ctx context.Context, t *testing.T, workload string) (b beats) {
	t.Helper()
	errors, err := c.Shell(ctx, workload, "cat /data/errors 2>/dev/null || true")
	must(t, err)
	if errors != "" {
		t.Errorf("%s had I/O errors:\n%s", workload, errors)
	}
	lines, err := c.Shell(ctx, workload, "cat /data/beat-*")
	must(t, err)
	for line := range strings.Lines(lines) {
		at, err := seconds(strings.TrimSpace(line))
		if err != nil {
			t.Errorf("%s wrote a line %q that is no time", workload, line)
			continue
		}
		b = append(b, at)
	}
	slices.Sort(b)
	return b
}

// longestPause between two writes after a time.
func (b beats) longestPause(since time.Duration) (longest time.Duration) {
	last := since
	for _, at := range b {
		if at >= since {
			longest, last = max(longest, at-last), at
		}
	}
	return longest
}

// waitBeat waits until a workload writes.
func (c *Cluster) waitBeat(ctx context.Context, t *testing.T, workload string) {
	t.Helper()
	since := uptime(t)
	must(t, eventually.Until(ctx, workload+" to write", workloadTimeout, func() error {
		line, err := c.Shell(ctx, workload, "tail -n1 /data/beat-$(hostname)")
		if err != nil {
			return err
		}
		at, err := seconds(line)
		if err != nil || at < since {
			return fmt.Errorf("it wrote %q last", line)
		}
		return nil
	}))
}

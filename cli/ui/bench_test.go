package ui

import (
	"net/http"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// mostViewTime is the target of a view of 1,000 volumes and 500 nodes.
const mostViewTime = 200 * time.Millisecond

// BenchmarkViews renders each view from a prepared reading of 1,000 volumes and 500 nodes.
func BenchmarkViews(b *testing.B) {
	s := trouble(b)
	s.change(many(1000))
	for _, path := range []string{"/", "/volumes", "/volumes?q=pvc", "/volumes?page=20", "/volumes/pvc-0500", "/settings", "/rollouts", "/fences", "/nfs", "/nfs/archive/vault"} {
		b.Run(path, func(b *testing.B) {
			page, get := open(b, s)
			page.watch.refresh(b.Context()) // reads twice, an interval apart, since something is wrong
			page.watch.interval = time.Hour // no reading while views are measured
			for b.Loop() {
				w := get(path)
				must.True(b, w.Code == http.StatusOK, "%d", w.Code)
			}
			took := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(took.Microseconds())/1000, "ms/view")
			b.Logf("%s: %s, target %s; met: %v", path, took.Round(10*time.Microsecond), mostViewTime, took <= mostViewTime)
		})
	}
}

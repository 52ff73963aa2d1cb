//go:build !race

// The race detector takes memory of its own.

package admission

import (
	"net/http"
	"runtime/debug"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
)

// Regression: one body of 7 MiB with tolerations took 550 MiB decoded.
func TestDecodedReviewsTakeNoMoreThanIsCounted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // garbage is not counted
	const mib = 1 << 20
	for name, hostile := range hostileReviews() {
		for values, want := range map[int]int{60_000: http.StatusOK, 500_000: http.StatusRequestEntityTooLarge} {
			body := hostile.review(values)
			counted := float64(requestCost+len(body)) + float64(decodingCost([]byte(body)))
			peak := testkit.WatchHeap()
			answer := reviews.Send(hostile.handler, "/pods", body)
			grew := peak()
			must.Equal(t, answer.Code, want, "%s, %d values, %.80s", name, values, answer.Body)
			atMost := min(counted, most) / mib
			must.Check(t, grew <= atMost*1.25, "%s, %d values: the heap grew by %.1f MiB, counted as %.1f", name, values, grew, atMost)
		}
	}
}

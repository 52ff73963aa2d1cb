//go:build !race

// The race detector takes memory of its own.

package admission

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
)

// upload sends all of a body but the last byte, from a loopback address.
type upload struct {
	conn    *tls.Conn
	status  atomic.Int32
	answers chan struct{}
}

func startUpload(t *testing.T, config *tls.Config, from, to string, body []byte, sent chan<- *upload) *upload {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := tls.DialWithDialer(dialer, "tcp", to, config)
	must.Do(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	u := &upload{conn: conn, answers: make(chan struct{})}
	go func() {
		fmt.Fprintf(conn, "POST /pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
		if _, err := conn.Write(body[:len(body)-1]); err == nil {
			sent <- u
		}
	}()
	go func() {
		defer close(u.answers)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("no answer: %v", err)
			return
		}
		_ = response.Body.Close()
		u.status.Store(int32(response.StatusCode))
		if response.StatusCode == http.StatusTooManyRequests {
			sent <- u
		}
	}()
	return u
}

// Regression: 24 bodies of anonymous callers held 191 MiB, more than the webhook's memory limit.
func TestLargeBodiesAtOnceStayWithinMemory(t *testing.T) {
	serving := validNow(t, servingName)
	_, address, _ := serveTLS(t, tlsConfig(t, serving, ""), podHandler(NewLimiter(), pass), 0)
	body := []byte(podReview(`{"metadata":{"name":"` + strings.Repeat("x", MaxBody-1024) + `"}}`))
	const sources, each, fit = 8, 4, memory / MaxBody
	peak := testkit.WatchHeap()
	sent := make(chan *upload, 2*sources*each)
	var uploads []*upload
	for i := range sources * each {
		from := fmt.Sprintf("127.0.0.%d", 1+i%sources)
		uploads = append(uploads, startUpload(t, serving.client(), from, address, body, sent))
	}
	refused := 0
	for range uploads {
		if u := <-sent; u.status.Load() == http.StatusTooManyRequests {
			refused++
		}
	}
	// The test's own end of a connection takes as much as the server's.
	grew := peak()
	must.Check(t, grew <= memory>>20+8, "the heap grew by %.0f MiB", grew)
	served := 0
	for _, u := range uploads {
		if u.status.Load() == 0 {
			_, _ = u.conn.Write(body[len(body)-1:])
		}
		<-u.answers
		if u.status.Load() == http.StatusOK {
			served++
		}
	}
	must.Check(t, refused == len(uploads)-fit && served == fit, "%d of %d were refused and %d served, want %d served", refused, len(uploads), served, fit)
}

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
			most := min(counted, memoryOfSource) / mib
			must.Check(t, grew <= most*1.25, "%s, %d values: the heap grew by %.1f MiB, counted as %.1f", name, values, grew, most)
		}
	}
}

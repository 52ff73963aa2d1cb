//go:build !race

// The race detector takes memory of its own.

package webhook

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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	u := &upload{conn: conn, answers: make(chan struct{})}
	go func() {
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", clientPodsPath, len(body))
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
	config, err := TLSConfig(fixed{certificate: serving.tls(t)}, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := serveTLS(t, config, newRig(t, fakeClient(t)), 0)
	body := []byte(podReview(`{"metadata":{"name":"` + strings.Repeat("x", MaxBody-1024) + `"}}`))
	const sources, each, fit = 8, 4, memory / MaxBody
	peak := watchHeap()
	sent := make(chan *upload, 2*sources*each)
	var uploads []*upload
	for i := range sources * each {
		from := fmt.Sprintf("127.0.0.%d", 1+i%sources)
		uploads = append(uploads, startUpload(t, &tls.Config{RootCAs: serving.pool(), ServerName: servingName}, from, address, body, sent))
	}
	refused := 0
	for range uploads {
		if u := <-sent; u.status.Load() == http.StatusTooManyRequests {
			refused++
		}
	}
	// The test's own end of a connection takes as much as the server's.
	if grew := peak(); grew > memory>>20+8 {
		t.Errorf("the heap grew by %.0f MiB", grew)
	}
	if refused != len(uploads)-fit {
		t.Errorf("%d of %d were refused, want all but %d", refused, len(uploads), fit)
	}
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
	if served != fit {
		t.Errorf("%d were served, want %d", served, fit)
	}
}

// Regression: one body of 7 MiB with tolerations took 550 MiB decoded.
func TestDecodedReviewsTakeNoMoreThanIsCounted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // garbage is not counted
	h := newRig(t, fakeClient(t))
	const mib = 1 << 20
	for name, review := range hostileReviews() {
		for values, want := range map[int]int{60_000: http.StatusOK, 500_000: http.StatusRequestEntityTooLarge} {
			path, body := review(values)
			counted := float64(requestCost+len(body)) + float64(decodingCost([]byte(body)))
			peak := watchHeap()
			status, answer := h.post(path, body)
			grew := peak()
			if status != want {
				t.Errorf("%s, %d values: got %d %.80s", name, values, status, answer)
			}
			if most := min(counted, memoryOfSource) / mib; grew > most*1.25 {
				t.Errorf("%s, %d values: the heap grew by %.1f MiB, counted as %.1f", name, values, grew, most)
			}
		}
	}
}

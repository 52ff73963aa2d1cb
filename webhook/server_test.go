package webhook

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate is a handler that holds /held requests until it is opened.
type gate struct {
	entered sync.WaitGroup
	open    chan struct{}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/held" {
		g.entered.Done()
		<-g.open
	}
	_, _ = io.WriteString(w, "answered")
}

type outcome struct {
	body   string
	closes bool
	err    error
}

func get(c *http.Client, url string) outcome {
	response, err := c.Get(url)
	if err != nil {
		return outcome{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return outcome{string(body), response.Close, err}
}

// drain holds requests, begins to drain, and opens the gate after a while.
func drain(t *testing.T, delay, hold time.Duration) (held, while []outcome) {
	serving := validNow(t, servingName)
	config, err := TLSConfig(fixed{certificate: serving.tls(t)}, "")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{open: make(chan struct{})}
	server, address, stop := serveTLS(t, config, g, delay)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: serving.pool(), ServerName: servingName}, MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	const n = 8
	if o := get(c, "https://"+address+"/"); o.err != nil || o.closes {
		t.Fatalf("before: %+v", o)
	}
	g.entered.Add(n)
	outcomes := make(chan outcome, n)
	for range n {
		go func() { outcomes <- get(c, "https://"+address+"/held") }()
	}
	g.entered.Wait()
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	eventually(t, "draining", server.Draining)
	for range n {
		while = append(while, get(c, "https://"+address+"/"))
	}
	time.Sleep(hold)
	close(g.open)
	for range n {
		held = append(held, <-outcomes)
	}
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("still not drained")
	}
	if o := get(c, "https://"+address+"/"); o.err == nil {
		t.Fatalf("served after it was drained: %+v", o)
	}
	return held, while
}

func TestDrainingAnswersWhatIsInFlight(t *testing.T) {
	for name, hold := range map[string]time.Duration{"within the delay": 0, "after the delay": 800 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			held, _ := drain(t, 500*time.Millisecond, hold)
			for _, o := range held {
				if o.err != nil || o.body != "answered" {
					t.Errorf("got %+v", o)
				}
			}
		})
	}
}

func TestRequestsThatComeWhileDrainingAreAnsweredAndClose(t *testing.T) {
	_, while := drain(t, 500*time.Millisecond, 0)
	for _, o := range while {
		if o != (outcome{"answered", true, nil}) {
			t.Errorf("got %+v", o)
		}
	}
}

// A client whose connection is left open may send its next request on it just
// as the server goes.
func TestAnswersToWhatWasInFlightCloseToo(t *testing.T) {
	for name, hold := range map[string]time.Duration{"within the delay": 0, "after the delay": 800 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			held, _ := drain(t, 500*time.Millisecond, hold)
			for _, o := range held {
				if !o.closes {
					t.Fatalf("its connection is left open: %+v", o)
				}
			}
		})
	}
}

func TestAListenerThatFailsEndsTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	server := &Server{Listener: listener, Handler: http.NotFoundHandler(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := server.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "serving admission: ") {
		t.Fatalf("got %v", err)
	}
}

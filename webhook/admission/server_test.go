package admission

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
	if r.Context().Err() != nil {
		http.Error(w, "the request was cancelled", http.StatusInternalServerError)
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

// Answers close their connections: a client that keeps one may send its next request as the server ends.
func TestDrainingAnswersRequestsAndClosesConnections(t *testing.T) {
	for name, hold := range map[string]time.Duration{"within the delay": 0, "after the delay": 2500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			serving := validNow(t, servingName)
			g := &gate{open: make(chan struct{})}
			server, stop := serveTLS(t, serving, "", g, 2*time.Second)
			address := server.Address
			const n = 8
			transport := &http.Transport{TLSClientConfig: serving.client(), MaxIdleConnsPerHost: n}
			defer transport.CloseIdleConnections()
			c := &http.Client{Transport: transport}
			must.Equal(t, get(c, "https://"+address+"/"), outcome{body: "answered"}, "before")
			g.entered.Add(n)
			held := make(chan outcome, n)
			for range n {
				go func() { held <- get(c, "https://"+address+"/held") }()
			}
			g.entered.Wait()
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			eventually(t, "draining", server.Draining)
			for range n {
				must.Equal(t, get(c, "https://"+address+"/"), outcome{"answered", true, nil}, "sent while draining")
			}
			time.Sleep(hold)
			close(g.open)
			for range n {
				o := <-held
				must.True(t, o.err == nil && o.body == "answered", "in flight: got %+v", o)
			}
			select {
			case <-stopped:
			case <-time.After(20 * time.Second):
				t.Fatal("still not drained")
			}
			o := get(c, "https://"+address+"/")
			must.True(t, o.err != nil, "served after it was drained: %+v", o)
		})
	}
}

func TestServerThatCannotListenEnds(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer taken.Close()
	for address, want := range map[string]string{
		taken.Addr().String(): "serving admission: listen tcp ",
		"127.0.0.1":           "listening for admission: address 127.0.0.1: missing port in address",
		"127.0.0.1:https":     `listening for admission: "https" is not the number of a port`,
	} {
		server := &Server{Address: address, Source: certificate{}, Handler: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}
		err := server.Start(t.Context())
		must.Check(t, err != nil && strings.HasPrefix(err.Error(), want), "got %v, want %s", err, want)
	}
}

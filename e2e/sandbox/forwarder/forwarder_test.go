package forwarder

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestForwarderGoesByReadiness: a replica that says that it is not ready gets no new
// connections; one that is late with its answer keeps them, unless it goes on like that.
func TestForwarderGoesByReadiness(t *testing.T) {
	t.Parallel()
	var code, late, asked atomic.Int64
	code.Store(http.StatusOK)
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if late.Add(-1) >= 0 {
			<-r.Context().Done()
		}
		w.WriteHeader(int(code.Load()))
	}))
	f := newForwarder(t)
	f.Add("127.0.0.1:1", replica.URL)
	waitNext(t, f, "it is ready", true)

	late.Store(2)
	for until := asked.Load() + 4; asked.Load() < until; time.Sleep(time.Millisecond) {
		if _, ready := f.next(); !ready {
			t.Fatal("two late answers took it off")
		}
	}
	code.Store(http.StatusServiceUnavailable)
	waitNext(t, f, "it drains", false)
	code.Store(http.StatusOK)
	waitNext(t, f, "it is back", true)
	late.Store(1000)
	waitNext(t, f, "it hangs", false)
	late.Store(0)
	waitNext(t, f, "it is back", true)
	replica.CloseClientConnections()
	replica.Close()
	waitNext(t, f, "it has closed its port", false)
}

// TestForwarderAsksEachByItself: one that is late does not keep the forwarder from hearing that another has become ready.
func TestForwarderAsksEachByItself(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(starting.Close)
	meanwhile := make(chan int64, 1000)
	late := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		before := asked.Load()
		<-r.Context().Done()
		meanwhile <- asked.Load() - before
	}))
	t.Cleanup(late.Close)
	f := newForwarder(t)
	f.Add("127.0.0.1:1", starting.URL)
	f.Add("127.0.0.1:2", late.URL)
	for range 10 {
		if <-meanwhile >= 3 {
			return
		}
	}
	t.Error("nobody else is asked while one is late")
}

func newForwarder(t *testing.T) *Forwarder {
	t.Helper()
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// waitNext waits until somebody gets new connections, or nobody does.
func waitNext(t *testing.T, f *Forwarder, what string, somebody bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, ok := f.next(); ok == somebody {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%s: that is not seen", what)
		}
	}
}

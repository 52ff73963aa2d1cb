package ui

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// askLive asks as an open page does.
func askLive(t *testing.T, page *server, path string) (p part) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	r.Header.Set("Accept", "application/json")
	r.AddCookie(&http.Cookie{Name: page.session.cookie, Value: page.session.secret})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	must.True(t, w.Header().Get("Content-Type") == "application/json", "%d %v", w.Code, w.Header())
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &p))
	return p
}

func TestOpenPageIsBroughtWhatHasChanged(t *testing.T) {
	s := trouble(t)
	page, _ := open(t, s)
	until := func(has func(part) bool) part {
		t.Helper()
		for range 500 {
			if p := askLive(t, page, "/volumes/pvc-a"); has(p) {
				return p
			}
			time.Sleep(page.watch.interval)
		}
		t.Fatal("the page does not change")
		return part{}
	}
	says := func(text string) func(part) bool {
		return func(p part) bool { return strings.Contains(string(p.HTML), text) }
	}
	first := until(says("pvc-a"))
	must.Check(t, !strings.Contains(string(first.HTML), "<html"), "the whole page was sent")
	must.Equal(t, until(says("pvc-a")).Version, first.Version, "version of the same text")
	s.change(func(r *reading) { r.status.Longhorn.Volumes[0].Hops[0].Message = "the cable is broken" })
	must.Check(t, until(says("the cable is broken")).Version != first.Version, "the version has not changed")
	away := errors.New("connection refused")
	s.gone.Store(&away)
	until(func(p part) bool { return strings.Contains(string(p.Freshness), "connection refused") })
	s.gone.Store(nil)
	until(func(p part) bool { return strings.Contains(string(p.Freshness), "Read at") })
	s.change(func(r *reading) { r.status.Longhorn.Volumes = nil })
	until(says("Not found"))
}

func TestVersionOfThePageIsThatOfTheFirstPart(t *testing.T) {
	const path = "/settings/storage-network"
	page, get := open(t, trouble(t))
	must.Check(t, strings.Contains(get(path).Body.String(), `data-version="`+askLive(t, page, path).Version+`"`), "the first part would replace the same text")
}

func TestClusterIsReadOnlyWhileSomebodyLooks(t *testing.T) {
	s := trouble(t)
	page, get := open(t, s)
	must.Check(t, s.reads.Load() == 0, "read %d times before anybody looked", s.reads.Load())
	for range 5 {
		get("/")
	}
	time.Sleep(5 * page.watch.interval)
	page.watch.refresh(t.Context())
	seen := s.reads.Load()
	time.Sleep(10 * page.watch.interval)
	must.Check(t, s.reads.Load() == seen, "read %d times while no page was open", s.reads.Load()-seen)
}

// Regression: a workload that started showed as wrong for one reading.
func TestWrongIsLookedAtTwice(t *testing.T) {
	s := trouble(t)
	readings := 0
	s.change(func(r *reading) {
		if readings++; readings > 1 {
			r.status.State = datapath.OK
		}
	})
	w := newWatch(s)
	w.interval = time.Millisecond
	must.Equal(t, w.refresh(t.Context()).reading.status.State, datapath.OK)
	must.Equal(t, readings, 2)
}

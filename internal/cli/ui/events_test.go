package ui

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// stream reads events of a view.
type stream struct{ lines *bufio.Scanner }

func streamOf(t *testing.T, page *server, view string) stream {
	t.Helper()
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events?view="+view, nil)
	must.Do(t, err)
	r.Host = host
	r.AddCookie(&http.Cookie{Name: page.session.cookie, Value: page.session.secret})
	answer, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	must.True(t, answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == "text/event-stream", "%d %v", answer.StatusCode, answer.Header)
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return stream{lines}
}

// until returns the data of the next event of the kind that has the text.
func (s stream) until(t *testing.T, event, text string) string {
	t.Helper()
	for kind := ""; s.lines.Scan(); {
		line := s.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			kind = name
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && kind == event {
			var decoded any
			must.Do(t, json.Unmarshal([]byte(data), &decoded))
			if part, ok := decoded.(map[string]any); ok {
				decoded = part["html"]
			}
			if strings.Contains(decoded.(string), text) {
				return decoded.(string)
			}
		}
	}
	t.Fatalf("the stream ended without an event %s with %q", event, text)
	return ""
}

func TestEventsBringWhatHasChanged(t *testing.T) {
	s := trouble(t)
	page, _ := open(t, s)
	events := streamOf(t, page, "/volumes/pvc-a")
	first := events.until(t, "live", "pvc-a")
	must.Check(t, !strings.Contains(first, "<html"), "the whole page was sent")
	s.change(func(r *reading) { r.status.Profiles[0].Volumes[0].Hops[0].Message = "the cable is broken" })
	events.until(t, "live", "the cable is broken")
	away := errors.New("connection refused")
	s.gone.Store(&away)
	events.until(t, "freshness", "connection refused")
	s.gone.Store(nil)
	events.until(t, "freshness", "Read at")
	s.change(func(r *reading) { r.status.Profiles[0].Volumes = nil })
	events.until(t, "live", "Not found")
}

func TestVersionOfThePageIsThatOfTheFirstEvent(t *testing.T) {
	page, get := open(t, trouble(t))
	html, err := page.liveOf(t.Context(), "/settings/storage-network?profile=longhorn", page.watch.refresh(t.Context()))
	must.Do(t, err)
	must.Check(t, strings.Contains(get("/settings/storage-network?profile=longhorn").Body.String(), `data-version="`+version(html)+`"`), "the first event would replace the same text")
}

func TestEventsOfAnotherSiteAreRefused(t *testing.T) {
	_, get := open(t, trouble(t))
	for _, view := range []string{"https://evil.example/", "//evil.example/", "x"} {
		must.Check(t, get("/events?view="+view).Code == http.StatusBadRequest, "%s is accepted", view)
	}
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

package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// live is the data of event "live".
type live struct {
	Version string `json:"version"`
	HTML    string `json:"html"`
}

// events streams the live part of a view whenever it has changed, and the freshness of the reading.
// The view is the path and query of the page; without a view there are only events on the freshness.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	view := r.URL.Query().Get("view")
	if view != "" && (!strings.HasPrefix(view, "/") || strings.HasPrefix(view, "//")) {
		http.Error(w, "view: must be the path of a view, such as /volumes", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	ticks := time.NewTicker(s.watch.interval)
	defer ticks.Stop()
	sent := map[string]string{}
	send := func(event string, data any) bool {
		text, err := json.Marshal(data)
		if err != nil || sent[event] == string(text) {
			return err == nil
		}
		sent[event] = string(text)
		_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
		return err == nil
	}
	for {
		given := s.watch.refresh(r.Context())
		fresh, err := s.freshness(given)
		if err != nil || r.Context().Err() != nil || !send("freshness", fresh) {
			return
		}
		if view != "" {
			html, err := s.liveOf(r.Context(), view, given)
			if err != nil || !send("live", live{version(html), string(html)}) {
				return
			}
		}
		if stream.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticks.C:
		}
	}
}

// liveOf renders the live part of a view from a state.
func (s *server) liveOf(ctx context.Context, view string, given state) (template.HTML, error) {
	ctx = context.WithValue(ctx, chi.RouteCtxKey, (*chi.Context)(nil)) // the route of the stream is another one
	r, err := http.NewRequestWithContext(context.WithValue(ctx, onlyLive{}, given), http.MethodGet, view, nil)
	if err != nil {
		return "", fmt.Errorf("reading the address of the view: %w", err)
	}
	var body buffer
	s.views.ServeHTTP(&body, r)
	return template.HTML(body.String()), nil //nolint:gosec // a view has rendered it
}

// buffer keeps the body of an answer.
type buffer struct {
	bytes.Buffer
	header http.Header
}

func (b *buffer) Header() http.Header {
	if b.header == nil {
		b.header = http.Header{}
	}
	return b.header
}

func (b *buffer) WriteHeader(int) {}

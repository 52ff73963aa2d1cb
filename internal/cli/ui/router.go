package ui

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed static
var static embed.FS

// server is the page of one cluster.
type server struct {
	http.Handler
	watch   *watch
	session *session
	// views renders the views, for the browser and for streams of events.
	views *chi.Mux
	// address is host:port.
	address, program, cluster string
	now                       func() time.Time
}

func newServer(address string, w *watch, program, cluster string) (*server, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address of the page: %w", err)
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, fmt.Errorf("files of the page: %w", err)
	}
	s := &server{watch: w, session: newSession(port), views: chi.NewRouter(), address: address, program: program, cluster: cluster, now: w.now}
	s.routeViews()
	r := chi.NewRouter()
	r.Use(headed, hosted(port), s.session.guarded)
	r.Get("/static/*", http.StripPrefix("/static/", http.FileServerFS(files)).ServeHTTP)
	r.Get("/events", s.events)
	r.Mount("/", s.views)
	s.Handler = r
	return s, nil
}

func (s *server) link() string { return "http://" + s.address + "/?token=" + s.session.token }

func (s *server) routeViews() {
	s.views.Get("/", s.show(overview))
	s.views.Get("/volumes", s.show(volumes))
	s.views.Get("/volumes/{volume}", s.show(volume))
	s.views.Get("/settings", s.show(settings))
	s.views.Get("/settings/{setting}", s.show(setting))
	s.views.Get("/plan", s.show(planned))
	s.views.Get("/rollouts", s.show(rollouts))
	s.views.Get("/fences", s.show(allFences))
	s.views.Get("/fences/{node}", s.show(fence))
	s.views.Get("/nfs", s.show(services))
	s.views.Get("/nfs/{namespace}/{name}", s.show(service))
	s.views.NotFound(s.show(missing))
}

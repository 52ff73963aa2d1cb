package ui

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"
)

//go:embed static
var static embed.FS

// server is the page of one cluster.
type server struct {
	http.Handler
	watch   *watch
	session *session
	// address is host:port.
	address, program, cluster string
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
	s := &server{watch: w, session: newSession(port), address: address, program: program, cluster: cluster}
	r := chi.NewRouter()
	r.Use(headed, hosted(port), s.session.guarded)
	r.Get("/static/*", http.StripPrefix("/static/", http.FileServerFS(files)).ServeHTTP)
	for path, v := range map[string]view{
		"/": overview, "/volumes": volumes, "/volumes/{volume}": volume, "/settings": settings, "/settings/{setting}": setting, "/plan": planned,
		"/rollouts": rollouts, "/fences": allFences, "/fences/{node}": fence, "/nfs": services, "/nfs/{namespace}/{name}": service,
	} {
		r.Get(path, s.show(v))
	}
	r.NotFound(s.show(missing))
	s.Handler = r
	return s, nil
}

func (s *server) link() string { return "http://" + s.address + "/?token=" + s.session.token }

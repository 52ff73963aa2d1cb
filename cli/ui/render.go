package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/status"
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
		"/rollouts": rollouts, "/timeline": timeline, "/fences": allFences, "/fences/{node}": fence, "/nfs": services, "/nfs/{namespace}/{name}": service,
	} {
		r.Get(path, s.show(v))
	}
	r.NotFound(s.show(missing))
	s.Handler = r
	return s, nil
}

func (s *server) link() string { return "http://" + s.address + "/?token=" + s.session.token }

//go:embed templates/*.html
var sources embed.FS

// templates are parsed once. Each rendering has a clone with the ages at its time.
var templates = template.Must(template.New("").Funcs(agesAt(time.Time{})).Funcs(template.FuncMap{
	"list": cli.List, "value": cli.Value, "cell": cli.Cell, "dash": cli.OrDash, "network": status.NetworkName, "networkNow": status.NetworkOf, "next": cli.Next,
	"volumeLink": volumeLink, "settingLink": settingLink, "fenceLink": fenceLink, "serviceLink": serviceLink, "planLink": planLink,
	"typed": typed, "progress": progressOf,
	"clients": func(p status.LonghornView) bar {
		return bar{"Clients on " + status.NetworkName(p.Network.Clients), p.Network.Updated, p.Network.Total}
	},
	"appliesState": func(applies string) string {
		return map[string]string{"applied": "ok", "now": "ok", "invalid": "wrong"}[applies]
	},
	"healthState": func(health string) string {
		return map[string]string{"Healthy": "ok", "Failing": "waiting", "Down": "wrong"}[health]
	},
	"readyState": func(ready string) string { return map[string]string{"True": "ok", "False": "wrong"}[ready] },
}).ParseFS(sources, "templates/*.html"))

// typed reports whether a next step is a command; others are done by hand, such as a reboot. A command
// with control characters is not offered for copying.
func typed(next string) bool {
	first, _, _ := strings.Cut(next, " ")
	return (first == "kubectl" || first == "fairlead") && !strings.ContainsFunc(next, func(r rune) bool { return !unicode.IsPrint(r) })
}

// bar shows how much of something is done or used.
type bar struct {
	Label       string
	Value, Most int
}

func agesAt(now time.Time) template.FuncMap {
	return template.FuncMap{
		"ago":  func(t *time.Time) string { return cli.Ago(t, now) },
		"note": func(v fences.Volume) string { return v.Note(now) },
	}
}

// rendered with ages at the time of the reading.
func rendered(name string, data any, given state) (template.HTML, error) {
	at := time.Time{}
	if given.reading != nil {
		at = given.reading.at
	}
	var text bytes.Buffer
	t, err := templates.Clone()
	if err == nil {
		err = t.Funcs(agesAt(at)).ExecuteTemplate(&text, name, data)
	}
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return template.HTML(text.String()), nil //nolint:gosec // html/template has escaped it
}

// view makes a page from a reading.
type view func(*server, *http.Request, *reading) page

// page is one view before it is rendered.
type page struct {
	code        int
	title, menu string
	// head has what stays, such as a form; live is replaced when it has changed. Both name templates.
	head, live string
	data       any
	// still: the live part is not replaced.
	still bool
}

// frame is the data of the layout.
type frame struct {
	Title, Menu, Cluster, Program, Version string
	Menus                                  []menu
	Still                                  bool
	Head, Live, Freshness                  template.HTML
}

type menu struct{ Path, Name string }

var menus = []menu{{"/", "Overview"}, {"/volumes", "Volumes"}, {"/settings", "Settings"}, {"/rollouts", "Roll-outs"}, {"/timeline", "Timeline"}, {"/fences", "Fences"}, {"/nfs", "NFS"}}

// part is what an open page asks for every two seconds.
type part struct {
	Version   string        `json:"version"`
	HTML      template.HTML `json:"html"`
	Freshness template.HTML `json:"freshness"`
}

const partType = "application/json"

// show serves a view: the whole page, or the part that is live to a page that is open.
func (s *server) show(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		isOpen := r.Header.Get("Accept") == partType
		look := s.watch.look
		if isOpen {
			look = s.watch.refresh
		}
		given := look(r.Context())
		p := page{code: http.StatusBadGateway, title: "No reading", live: "unread"}
		if given.reading != nil {
			p = v(s, r, given.reading)
		}
		body, err := s.body(p, given, isOpen)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if isOpen {
			w.Header().Set("Content-Type", partType)
		}
		if p.code != 0 {
			w.WriteHeader(p.code)
		}
		_, _ = w.Write(body) // the browser may have gone
	}
}

func (s *server) body(p page, given state, isOpen bool) ([]byte, error) {
	live, err := rendered(p.live, p.data, given)
	if err != nil {
		return nil, err
	}
	if !isOpen {
		whole, err := s.whole(p, live, given)
		return []byte(whole), err
	}
	fresh, err := s.freshness(given)
	if err != nil {
		return nil, err
	}
	return json.Marshal(part{version(live), live, fresh})
}

// whole puts the live part into the layout.
func (s *server) whole(p page, live template.HTML, given state) (template.HTML, error) {
	f := frame{Title: p.title, Menu: p.menu, Menus: menus, Cluster: s.cluster, Program: s.program, Still: p.still, Live: live, Version: version(live)}
	var err error
	if p.head != "" {
		if f.Head, err = rendered(p.head, p.data, given); err != nil {
			return "", err
		}
	}
	if f.Freshness, err = s.freshness(given); err != nil {
		return "", err
	}
	return rendered("layout", f, given)
}

// version tells two renderings of a live part apart.
func version(live template.HTML) string {
	sum := sha256.Sum256([]byte(live))
	return hex.EncodeToString(sum[:8])
}

// freshness says when the cluster was read, and since when it can't be read.
func (s *server) freshness(given state) (template.HTML, error) {
	data := struct{ Read, Since, Error string }{}
	if given.reading != nil {
		data.Read = clock(given.reading.at)
	}
	if given.err != nil {
		data.Since, data.Error = clock(given.since), given.err.Error()
	}
	return rendered("freshness", data, given)
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/nfs"
	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// hostile is markup, which no view may pass on.
const hostile = `"><script>alert(1)</script>'<img src=x onerror=alert(2)>&{{.}}`

// scripted is a cluster that a test changes.
type scripted struct {
	clusterSource
	// changed alters the reading; gone is the error while the cluster is away.
	changed atomic.Pointer[func(*reading)]
	gone    atomic.Pointer[error]
	reads   atomic.Int32
}

func (s *scripted) read(ctx context.Context, now time.Time) (*reading, error) {
	s.reads.Add(1)
	if err := s.gone.Load(); err != nil {
		return nil, *err
	}
	r, err := s.clusterSource.read(ctx, now)
	if change := s.changed.Load(); change != nil && err == nil {
		(*change)(r)
	}
	return r, err
}

func (s *scripted) change(change func(*reading)) { s.changed.Store(&change) }

// trouble is a cluster with something to say in every view.
func trouble(t testing.TB) *scripted {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	live := clitest.Client(t, interceptor.Funcs{}, objects.TroubledCluster(clitest.Noon)...)
	return &scripted{clusterSource: clusterSource{cli.Target{Longhorn: c.Longhorn, Configuration: c, Reader: reads.NewReader(c.Longhorn.Names(), live, live), Live: live}, ""}}
}

// host is the address of the page in tests.
const host = "127.0.0.1:8400"

// open returns a page, and a browser that has opened its link.
func open(t testing.TB, s source) (*server, func(path string) *httptest.ResponseRecorder) {
	t.Helper()
	w := newWatch(s)
	w.interval = 10 * time.Millisecond
	page, err := newServer(host, w, "fairlead", "lab (https://127.0.0.1:6443)")
	must.Do(t, err)
	link, err := url.Parse(page.link())
	must.Do(t, err)
	first := ask(page, link.RequestURI())
	cookies := first.Result().Cookies()
	must.True(t, first.Code == http.StatusSeeOther && len(cookies) == 1, "%d %v", first.Code, cookies)
	return page, func(path string) *httptest.ResponseRecorder { return ask(page, path, cookies...) }
}

func ask(h http.Handler, path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestLinkWorksOnceInOneBrowser(t *testing.T) {
	page, err := newServer(host, newWatch(trouble(t)), "fairlead", "lab")
	must.Do(t, err)
	link, err := url.Parse(page.link())
	must.Do(t, err)
	for name, path := range map[string]string{"no cookie": "/", "wrong token": "/?token=x", "empty token": "/?token=", "token elsewhere": "/volumes?" + link.RawQuery, "file": "/static/style.css"} {
		if w := ask(page, path); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "once, in one browser") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	first := ask(page, link.RequestURI())
	cookie := first.Header().Get("Set-Cookie")
	must.Check(t, first.Code == http.StatusSeeOther && first.Header().Get("Location") == "/", "%d %v", first.Code, first.Header())
	must.Check(t, strings.Contains(cookie, "HttpOnly") && strings.Contains(cookie, "SameSite=Strict") && !strings.Contains(cookie, link.Query().Get("token")), "%s", cookie)
	again := ask(page, link.RequestURI())
	must.Check(t, again.Code == http.StatusForbidden && strings.Contains(again.Body.String(), "was used already"), "%d %s", again.Code, again.Body)
	must.Check(t, ask(page, "/", &http.Cookie{Name: page.session.cookie, Value: "x"}).Code == http.StatusForbidden, "a wrong cookie is admitted")
	must.Check(t, ask(page, link.RequestURI(), first.Result().Cookies()...).Code == http.StatusSeeOther, "the same browser can't use the link again")
}

func TestOtherHostNamesAreRefused(t *testing.T) {
	page, _ := open(t, trouble(t))
	for name, want := range map[string]int{
		host: http.StatusOK, "localhost:8400": http.StatusOK, "[::1]:8400": http.StatusOK,
		"evil.example:8400": http.StatusForbidden, "127.0.0.1": http.StatusForbidden, "127.0.0.1:80": http.StatusForbidden, "localhost.evil.example:8400": http.StatusForbidden, "": http.StatusForbidden,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = name
		r.AddCookie(&http.Cookie{Name: page.session.cookie, Value: page.session.secret})
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		must.Check(t, w.Code == want, "%q: %d, want %d", name, w.Code, want)
	}
}

func TestPagesAllowNothingInline(t *testing.T) {
	_, get := open(t, trouble(t))
	for _, path := range append(views, "/static/live.js", "/no-such-view") {
		w := get(path)
		for name, want := range map[string]string{"Content-Security-Policy": "script-src 'self'; style-src 'self'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			must.Check(t, strings.Contains(w.Header().Get(name), want), "%s: %s is %q", path, name, w.Header().Get(name))
		}
		for _, inline := range []string{" style=", " onclick", "<style", "javascript:", "<script>"} {
			must.Check(t, !strings.Contains(w.Body.String(), inline), "%s has %q", path, inline)
		}
	}
	must.Check(t, !strings.Contains(get("/").Header().Get("Content-Security-Policy"), "unsafe"), "the policy allows inline content")
	must.Check(t, strings.HasPrefix(get("/static/style.css").Header().Get("Content-Type"), "text/css"), "styles have another type")
}

// views are the addresses of all views of trouble.
var views = []string{
	"/", "/volumes", "/volumes/pvc-a", "/volumes/pvc-b", "/settings", "/settings/priority-class", "/plan?name=priority-class&value=x",
	"/rollouts", "/timeline", "/fences", "/fences/node-3", "/nfs", "/nfs/archive/vault",
}

func TestEveryViewShowsItsPart(t *testing.T) {
	_, get := open(t, trouble(t))
	for i, want := range []string{
		"have 10.1.0.9, and Multus reports 10.1.0.7", "default/web-0", `<div class="path"`, "no Service and no server", "will be applied when these volumes are detached", "longhorn-critical",
		"priority-class", "clients and servers are on the network", "evicted, since its mount was dead", "a controller of Fairlead", "fairlead check", "archive/vault", "1 of 2 backends is healthy",
	} {
		w := get(views[i])
		must.Check(t, w.Code == http.StatusOK, "%s: %d", views[i], w.Code)
		must.Check(t, strings.Contains(w.Body.String(), want), "%s does not say %q:\n%s", views[i], want, w.Body)
		must.Check(t, strings.Count(w.Body.String(), "<h1>") == 1, "%s has not one heading", views[i])
	}
}

func TestUnknownNamesAreNotFound(t *testing.T) {
	_, get := open(t, trouble(t))
	for path, want := range map[string]string{
		"/volumes/pvc-x": "did you mean pvc-a, pvc-b?", "/settings/priority-clas": "did you mean priority-class", "/fences/node-4": "did you mean node-3?",
		"/nfs/archive/vaults": "did you mean archive/vault?", "/x": "No view has the address",
	} {
		w := get(path)
		must.Check(t, w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), want), "%s: %d %s", path, w.Code, w.Body)
	}
}

func TestHostileTextIsEscapedInEveryView(t *testing.T) {
	s := trouble(t)
	s.change(func(r *reading) {
		r.status, r.fences, r.services = clitest.Spoiled[status.View](), []fences.View{clitest.Spoiled[fences.View]()}, []nfs.View{clitest.Spoiled[nfs.View]()}
		r.notes = []string{hostile}
		p := r.status.Longhorn
		v := datapath.Path{Volume: hostile, Nodes: []string{hostile}, Workloads: []string{hostile}, Server: []string{hostile}, State: datapath.Wrong, WaitsFor: hostile, Wanted: hostile}
		for _, kind := range []datapath.Kind{datapath.Client, datapath.Endpoint, datapath.Service, datapath.Addresses, datapath.Server} {
			v.Hops = append(v.Hops, datapath.Hop{Kind: kind, Name: hostile, Node: hostile, Network: hostile, Addresses: []string{hostile}, State: datapath.Wrong, Message: hostile, Command: hostile})
		}
		p.Network.Message, p.Volumes = hostile, []datapath.Path{v}
		p.Waiting[0].Name, p.Waiting[0].Value, p.Waiting[0].Reason = hostile, hostile, hostile
		r.fences[0].Node, r.fences[0].Next, r.fences[0].Message = hostile, hostile, hostile
		r.services[0].Service, r.services[0].Message, r.services[0].Backends[0].Address = "archive/"+hostile, hostile, hostile
	})
	_, get := open(t, s)
	escaped := url.PathEscape(hostile)
	for _, path := range []string{"/", "/volumes?q=" + url.QueryEscape(hostile), "/volumes/" + escaped, "/settings", "/plan?name=" + url.QueryEscape(hostile) + "&value=" + url.QueryEscape(hostile), "/rollouts", "/fences?q=script", "/fences/" + escaped, "/nfs", "/nfs/archive/" + escaped, "/volumes/x" + escaped} {
		body := get(path).Body.String()
		must.Check(t, strings.Contains(body, "alert(1)"), "%s does not show the text", path)
		for _, markup := range []string{"<script>", "<img src=x", `="` + hostile} {
			must.Check(t, !strings.Contains(body, markup), "%s has %s:\n%s", path, markup, body)
		}
	}
}

func TestOnlyCommandsAreOfferedForCopying(t *testing.T) {
	for text, want := range map[string]bool{"kubectl get pods": true, "fairlead nfs": true, "kubectl fairlead nfs": true, "reboot the machine": false, "-": false, "": false, "kubectl get pods\nrm x": false, "kubectl \u202e": false} {
		must.Check(t, typed(text) == want, "%q: %v", text, !want)
	}
}

// many volumes, of which one in ten waits.
func many(count int) func(*reading) {
	return func(r *reading) {
		p := r.status.Longhorn
		broken := p.Volumes[0]
		p.Volumes = nil
		for i := range count {
			v := broken
			v.Volume, v.Nodes, v.Workloads = fmt.Sprintf("pvc-%04d", i), []string{fmt.Sprintf("node-%03d", i%500)}, []string{fmt.Sprintf("default/web-%d", i)}
			v.State = datapath.OK
			if i%10 == 0 {
				v.State = datapath.Waiting
			}
			p.Volumes = append(p.Volumes, v)
		}
		r.fences = nil
		for i := range count / 2 {
			r.fences = append(r.fences, fences.View{Node: fmt.Sprintf("node-%03d", i), Phase: "Healthy"})
		}
		service := nfs.View{Service: "archive/vault", Ready: "True", Backends: []nfs.Backend{{Address: "10.2.0.1:2049", Nodes: count / 2, Health: "Healthy"}}}
		for i := range count / 2 {
			service.Nodes = append(service.Nodes, nfs.Node{Node: fmt.Sprintf("node-%03d", i), Backend: "10.2.0.1:2049", Volumes: 2})
		}
		r.services = []nfs.View{service}
	}
}

func TestLongListsArePagedAndSearched(t *testing.T) {
	s := trouble(t)
	s.change(many(1000))
	_, get := open(t, s)
	for path, want := range map[string][]string{
		"/volumes":                            {"1–50 of 1000 RWX volumes", "pvc-0490", `href="/volumes?page=2"`},
		"/volumes?page=2":                     {"51–100 of 1000", "pvc-0500", `rel="prev"`, `rel="next"`},
		"/volumes?page=20":                    {"951–1000 of 1000", "pvc-0999"},
		"/volumes?page=99":                    {"951–1000 of 1000"},
		"/volumes?page=-1":                    {"1–50 of 1000"},
		"/volumes?page=x":                     {"1–50 of 1000"},
		"/volumes?q=WEB-77":                   {"1–11 of 11 RWX volumes found, of 1000", "pvc-0770"},
		"/volumes?q=node-042":                 {"1–2 of 2 RWX volumes found, of 1000", "pvc-0042", "pvc-0542"},
		"/volumes?q=nothing":                  {"No RWX volumes found, of 1000"},
		"/volumes?state=waiting&q=pvc&page=2": {"51–100 of 100 RWX volumes", "state=waiting", "q=pvc"},
		"/fences?page=3":                      {"101–150 of 500 nodes", "node-100"},
		"/nfs/archive/vault?q=node-49":        {"1–10 of 10 nodes found, of 500", "node-499"},
	} {
		body := get(path).Body.String()
		for _, text := range want {
			must.Check(t, strings.Contains(body, text), "%s does not have %q", path, text)
		}
		must.Check(t, strings.Count(body, "<tr>") <= perPage+3, "%s has %d rows", path, strings.Count(body, "<tr>"))
	}
}

func TestPlanShowsWhatAValueDoesAndTheCommand(t *testing.T) {
	_, get := open(t, trouble(t))
	for query, want := range map[string]struct {
		code  int
		texts []string
	}{
		"name=storage-network-for-rwx-volume-enabled&value=false": {200, []string{"kubectl -n longhorn-system patch settings.longhorn.io storage-network-for-rwx-volume-enabled --type merge -p &#39;{&#34;value&#34;:&#34;false&#34;}&#39;", "What is done"}},
		"name=storage-network-for-rwx-volume-enabled&value=true":  {200, []string{"has this value already"}},
		"name=storage-network-for-rwx-volume-enabled&value=maybe": {200, []string{"would be refused", "must be &#34;true&#34; or &#34;false&#34;"}},
		"name=priority-clas&value=x":                              {400, []string{"did you mean priority-class"}},
		"name=priority-class&value=missing":                       {200, []string{"would be refused"}},
		"":                                                        {200, []string{"What would a value do?"}},
		"name=endpoint-network-for-rwx-volume&unset=on":           {200, []string{"has this value already"}},
	} {
		w := get("/plan?" + query)
		must.Check(t, w.Code == want.code, "%s: %d", query, w.Code)
		for _, text := range want.texts {
			must.Check(t, strings.Contains(w.Body.String(), text), "%s does not say %q:\n%s", query, text, w.Body)
		}
	}
}

// Regression: a red error stood there before anything was typed.
func TestEmptyPlanIsNoError(t *testing.T) {
	_, get := open(t, trouble(t))
	w := get("/plan")
	must.Check(t, w.Code == http.StatusOK && !strings.Contains(w.Body.String(), "No plan."), "%d %s", w.Code, w.Body)
}

func TestValuesAreSuggested(t *testing.T) {
	s := trouble(t)
	must.Equal(t, s.suggest(t.Context(), "v2-data-engine"), []string{"false", "true"})
	must.Do(t, s.target.Live.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}}))
	must.Equal(t, s.suggest(t.Context(), "priority-class"), []string{"urgent"})
	must.Check(t, s.suggest(t.Context(), "unknown") == nil, "an unknown setting has values")
}

func TestRolloutsShowNodesAndNetworks(t *testing.T) {
	s := trouble(t)
	_, get := open(t, s)
	body := get("/rollouts").Body.String()
	for _, want := range []string{"Nodes and networks", `<span class="on net1">client</span>`, `<span class="on net1">1 server</span>`} {
		must.Check(t, strings.Contains(body, want), "%q is missing in\n%s", want, body)
	}
}

func TestClusterThatGoesAwayIsSaidAndComesBack(t *testing.T) {
	s := trouble(t)
	page, get := open(t, s)
	body := get("/volumes").Body.String()
	must.Check(t, strings.Contains(body, "Read at ") && !strings.Contains(body, "can&#39;t be read"), "%s", body)
	away := errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")
	s.gone.Store(&away)
	time.Sleep(2 * page.watch.interval)
	page.watch.refresh(t.Context())
	body = get("/volumes").Body.String()
	for _, want := range []string{"The cluster can't be read since ", "connection refused", "Shown is the reading of", "pvc-a"} {
		must.Check(t, strings.Contains(body, want), "the page does not say %q:\n%s", want, body)
	}
	w := get("/plan?name=priority-class&value=longhorn-critical")
	must.Check(t, w.Code < 500, "%d", w.Code)
	s.gone.Store(nil)
	time.Sleep(2 * page.watch.interval)
	page.watch.refresh(t.Context())
	body = get("/volumes").Body.String()
	must.Check(t, !strings.Contains(body, "connection refused"), "%s", body)
}

func TestUnreadClusterHasAPage(t *testing.T) {
	s := trouble(t)
	away := errors.New("connection refused")
	s.gone.Store(&away)
	_, get := open(t, s)
	w := get("/")
	must.Check(t, w.Code == http.StatusBadGateway && strings.Contains(w.Body.String(), "connection refused"), "%d %s", w.Code, w.Body)
}

func TestPlannersMayReadThePage(t *testing.T) {
	c, err := config.Load("")
	must.Do(t, err)
	funcs, read := clitest.CheckReads(t, map[string]string{"base": "fairlead-planner", "components/fencing": "fairlead-fence-viewer", "components/nfs": "fairlead-nfs-viewer"})
	live := clitest.Client(t, funcs, objects.TroubledCluster(clitest.Noon)...)
	s := clusterSource{cli.Target{Longhorn: c.Longhorn, Configuration: c, Reader: reads.NewReader(c.Longhorn.Names(), live, live), Live: live}, ""}
	_, err = s.read(t.Context(), clitest.Noon)
	must.Do(t, err)
	must.Check(t, read["nfsservices"] && read["nodefences"] && read["volumes"], "only these were read: %v", read)
}

func TestCommandServesThePageUntilItIsInterrupted(t *testing.T) {
	api := clitest.ServeAPI(t, nil, objects.TroubledCluster(time.Now())...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	kubeconfig := clitest.Kubeconfig(t, api)
	ended := make(chan error, 1)
	go func() {
		cmd := Command()
		cmd.SetArgs([]string{"--kubeconfig", kubeconfig})
		cmd.SetOut(in)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(ctx)
		_ = in.CloseWithError(io.EOF)
		ended <- err
	}()
	var text strings.Builder
	for chunk := make([]byte, 256); !strings.Contains(text.String(), "Ctrl-C"); {
		n, err := out.Read(chunk)
		must.Do(t, err)
		text.Write(chunk[:n])
	}
	must.Check(t, strings.HasPrefix(text.String(), "Cluster c ("), "%s", text.String())
	_, link, _ := strings.Cut(text.String(), "Open ")
	link, _, _ = strings.Cut(link, "\n")
	browser := &http.Client{Jar: jar{}}
	answer, err := browser.Get(link)
	must.Do(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.Check(t, err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(body), "priority-class"), "%d %s %v", answer.StatusCode, body, err)
	cancel()
	must.Do(t, <-ended)
}

// jar sends every cookie everywhere.
type jar map[string]*http.Cookie

func (j jar) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		j[c.Name] = c
	}
}

func (j jar) Cookies(*url.URL) []*http.Cookie {
	var all []*http.Cookie
	for _, c := range j {
		all = append(all, c)
	}
	return all
}

package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"slices"
	"sync"
)

const (
	wrongHost = "This page answers to its own address only. Open the link that \"fairlead ui\" has printed.\n"
	noSession = "This browser has not opened the link that \"fairlead ui\" has printed. The link works once, in one browser.\n" +
		"To use another browser, end the command with Ctrl-C, start it again, and open the new link.\n"
	usedToken = "The token in this link is wrong, or the link was used already. The link works once, in one browser.\n" +
		"End \"fairlead ui\" with Ctrl-C, start it again, and open the new link.\n"
)

// policy allows what the page itself serves, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// headed sets the headers of every answer.
func headed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// hosted refuses other names of the host: a page of a hostile site could reach this server by a
// name of its own that resolves to the loopback address (DNS rebinding).
func hosted(port string) func(http.Handler) http.Handler {
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !slices.Contains(hosts, r.Host) {
				refuse(w, wrongHost)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// guarded admits the browser with the cookie, and exchanges the token of the link for the cookie.
func (s *session) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, hasToken := r.URL.Query()["token"]
		link := hasToken && r.URL.Path == "/"
		switch {
		case link && !s.has(r) && !s.exchange(token[0]):
			refuse(w, usedToken)
		case link:
			s.admit(w)
			http.Redirect(w, r, "/", http.StatusSeeOther) // the address has no token then
		case !s.has(r):
			refuse(w, noSession)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(text)) // the browser may have gone
}

// session admits the one browser that opens the link first.
type session struct {
	cookie, secret string

	mu    sync.Mutex
	token string // empty: used
}

// newSession names the cookie for the port, because browsers send cookies to all ports of a host.
func newSession(port string) *session {
	return &session{cookie: "fairlead-ui-" + port, secret: rand.Text(), token: rand.Text()}
}

// exchange reports whether the token is right, which it is once.
func (s *session) exchange(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = ""
	return true
}

// has reports whether the request comes from the admitted browser.
func (s *session) has(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.secret)) == 1
}

// admit gives the browser the cookie.
func (s *session) admit(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

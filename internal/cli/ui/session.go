package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
)

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

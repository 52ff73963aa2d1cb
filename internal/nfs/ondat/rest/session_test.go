package rest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func (w *world) list(t *testing.T) {
	t.Helper()
	if listing, err := w.Volumes(t.Context()); err != nil || len(listing.Failed) > 0 {
		t.Fatalf("got %v, %v", err, listing.Failed)
	}
}

// loggedIn compares the logins since the last call of Requests.
func (w *world) loggedIn(t *testing.T, want int) {
	t.Helper()
	logins := 0
	for _, r := range w.Requests() {
		if r == "POST /auth/login" {
			logins++
		}
	}
	must.Equal(t, logins, want, "logins")
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func TestTokenIsRenewedByItsLifetime(t *testing.T) {
	for name, c := range map[string]struct {
		lifetime, refresh time.Duration
		steps             []time.Duration
		logins            int
	}{
		"first":                           {steps: []time.Duration{0, 0}, logins: 1},
		"young":                           {steps: []time.Duration{0, 59 * time.Second}, logins: 1},
		"as old as it may become":         {steps: []time.Duration{0, 61 * time.Second}, logins: 2},
		"renewed twice":                   {steps: []time.Duration{0, 61 * time.Second, 61 * time.Second}, logins: 3},
		"short life":                      {lifetime: 30 * time.Second, steps: []time.Duration{0, 19 * time.Second, 2 * time.Second}, logins: 2},
		"long life, seldom":               {lifetime: time.Hour, refresh: time.Hour, steps: []time.Duration{0, 39 * time.Minute, 2 * time.Minute}, logins: 2},
		"expired: it logs in again":       {steps: []time.Duration{0, 301 * time.Second}, logins: 2},
		"nearly expired when last looked": {steps: []time.Duration{0, 299 * time.Second}, logins: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Refresh = c.refresh })
			if c.lifetime > 0 {
				w.Lifetime = c.lifetime
			}
			for _, step := range c.steps {
				w.pass(step)
				w.list(t)
			}
			w.loggedIn(t, c.logins)
		})
	}
}

func TestEndedSessionIsReplacedAndTheRequestRepeated(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	w.EndSessions()
	w.list(t)
	w.loggedIn(t, 2)
}

func TestFailedLoginKeepsTheOldToken(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	w.Requests()
	w.Fail(bed.Fault{Path: "/auth/login", Status: http.StatusServiceUnavailable, Body: "<html>"})
	w.pass(61 * time.Second)
	w.list(t)
	w.list(t)
	w.loggedIn(t, 1)
	w.pass(renewAgain)
	w.list(t)
	w.loggedIn(t, 1)
	w.pass(4 * time.Minute) // the token has expired
	_, err := w.Volumes(t.Context())
	must.True(t, IsCode(err, http.StatusServiceUnavailable), "got %v", err)
}

// hold keeps requests of a path waiting until release is called. reached is closed with the first.
func (w *world) hold(path string) (reached chan struct{}, release func()) {
	reached, released := make(chan struct{}), make(chan struct{})
	w.Before(func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, path) {
			close(reached)
			<-released
		}
	})
	return reached, func() { close(released) }
}

// The released manager's loop hands each call to the goroutine that logs in (Start).
func TestSlowLoginStopsNoRequestWithAToken(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Timeout = time.Minute })
	w.list(t)
	renewing, release := w.hold("/auth/login")
	w.pass(61 * time.Second)
	var group sync.WaitGroup
	group.Go(func() { w.list(t) })
	<-renewing
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := w.Volumes(ctx); err != nil { // with the old token
		t.Error(err)
	}
	release()
	group.Wait()
}

func TestWaitingForALoginEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	loggingIn, release := w.hold("/auth/login")
	var group sync.WaitGroup
	group.Go(func() { w.list(t) })
	<-loggingIn
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Volumes(ctx); err == nil {
		t.Error("no error")
	}
	release()
	group.Wait()
}

func TestManyRequestsLogInOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { w.list(t) })
	}
	group.Wait()
	w.loggedIn(t, 1)
}

func TestCredentialsAreReadAtEachLogin(t *testing.T) {
	w := newWorld(t)
	w.Password = "another one"
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "check user name and password") || strings.Contains(err.Error(), "good password") {
		t.Fatalf("got %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(w.secret, "password"), []byte(w.Password), 0o600))
	w.list(t)
	w.EndSessions()
	must.Do(t, os.Remove(filepath.Join(w.secret, "password")))
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// The released manager ended on a header without a blank (client.go).
func TestTokenOfAnyHeader(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer  abc ": "abc", "abc": "abc", "": "", "Bearer": "", "Bearer ": "", "Basic abc": "", " ": "",
	} {
		must.Equal(t, bearer(header), want, "%q", header)
	}
}

func TestLifetimeOfATokenIsBounded(t *testing.T) {
	for seconds, want := range map[uint64]time.Duration{60: time.Minute, 0: defaultLifetime, 1 << 63: 7 * 24 * time.Hour} {
		must.Equal(t, lifetime(seconds), want, "%d", seconds)
	}
}

func TestAnswerWithoutATokenIsAnError(t *testing.T) {
	for _, body := range []string{"{}", "", "null", "<html>", `{"session": 3}`} {
		w := newWorld(t)
		w.Fail(bed.Fault{Path: "/auth/login", Status: http.StatusOK, Body: body})
		_, err := w.Volumes(t.Context())
		if err == nil || !strings.Contains(err.Error(), "is not Ondat's API") {
			t.Errorf("%q: got %v", body, err)
		}
		if slices.Contains(w.Requests(), "GET /namespaces") {
			t.Errorf("%q: it went on", body)
		}
	}
}

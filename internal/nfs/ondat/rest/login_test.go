package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

func TestEndedSessionIsReplacedAndTheRequestRepeated(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	w.list(t)
	w.loggedIn(t, 1)
	w.EndSessions()
	w.list(t)
	w.loggedIn(t, 1)
}

func TestFailedLoginIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	w.EndSessions()
	w.Fail(bed.Fault{Path: "/auth/login", Status: http.StatusServiceUnavailable, Body: "<html>", Times: 1})
	_, err := w.Volumes(t.Context())
	must.True(t, isStatus(err, http.StatusServiceUnavailable) && strings.HasPrefix(err.Error(), "logging in at Ondat's API: status 503: Fairlead tries again"), "got %v", err)
	w.list(t)
}

func TestManyRequestsLogInOnce(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { w.list(t) })
		}
		group.Wait()
		w.loggedIn(t, 1)
		w.EndSessions()
	}
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
	must.Do(t, os.WriteFile(filepath.Join(w.secret, "username"), []byte("\n"), 0o600))
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "username is empty") {
		t.Errorf("got %v", err)
	}
	must.Do(t, os.Remove(filepath.Join(w.secret, "username")))
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// The released manager ended on a header without a blank (client.go).
func TestTokenOfHeaderOrBody(t *testing.T) {
	for name, c := range map[string]struct{ header, body, want string }{
		"header":           {"Bearer abc", "{}", "abc"},
		"lower case":       {"bearer  abc ", "{}", "abc"},
		"bare":             {"abc", "{}", "abc"},
		"body":             {"", `{"session": {"token": "abc"}}`, "abc"},
		"no token in it":   {"Bearer ", `{"session": {"token": "abc"}}`, "abc"},
		"both":             {"Bearer abc", `{"session": {"token": "def"}}`, "abc"},
		"neither":          {"", "{}", ""},
		"nothing":          {"", "", ""},
		"null":             {"", "null", ""},
		"no JSON":          {"", "<html>", ""},
		"of another shape": {"", `{"session": 3}`, ""},
	} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
			if strings.HasSuffix(r.URL.Path, "/login") {
				w.Header().Set("Authorization", c.header)
				fmt.Fprint(w, c.body)
			} else {
				fmt.Fprint(w, "[]")
			}
		}))
		_, err := client(t, server.URL, "", newWorld(t).secret).Volumes(context.Background())
		server.Close()
		if c.want == "" {
			must.True(t, err != nil && strings.Contains(err.Error(), "is not Ondat's API") && len(asked) == 1, "%s: asked %q, got %v", name, asked, err)
		} else {
			must.True(t, err == nil && slices.Equal(asked, []string{"/v2/auth/login ", "/v2/namespaces Bearer abc"}), "%s: asked %q, got %v", name, asked, err)
		}
	}
}

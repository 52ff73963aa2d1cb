package settingsapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	one = "/v1/settings/" + settingName
	set = `{"value": "kube-system/storage-net"}`
)

func TestStatusCodes(t *testing.T) {
	for _, test := range []struct {
		name, method, path, body   string
		headers                    []string
		lacks, says, header, value string
		code                       int
		reason                     metav1.StatusReason
	}{
		{name: "list", method: "GET", path: "/v1/settings", code: 200},
		{name: "list with a slash", method: "GET", path: "/v1/settings/", code: 200},
		{name: "get", method: "GET", path: one, code: 200},
		{name: "head", method: "HEAD", path: one, code: 200},
		{name: "put", method: "PUT", path: one, body: set, code: 200},
		{name: "put of nothing", method: "PUT", path: one, body: `{"value": ""}`, code: 200},
		{name: "put with a charset", method: "PUT", path: one, body: set, headers: []string{"Content-Type", "application/json; charset=utf-8"}, code: 200},
		{name: "put if it is there", method: "PUT", path: one, body: set, headers: []string{"If-Match", "*"}, code: 200},

		{name: "no token", method: "GET", path: one, headers: []string{"Authorization", ""}, code: 401, reason: "Unauthorized", says: "kubectl create token", header: "WWW-Authenticate", value: `Bearer realm="fairlead"`},
		{name: "no bearer", method: "GET", path: one, headers: []string{"Authorization", "Basic YTpi"}, code: 401, reason: "Unauthorized", header: "WWW-Authenticate", value: `Bearer realm="fairlead"`},
		{name: "empty bearer", method: "GET", path: one, headers: []string{"Authorization", "Bearer "}, code: 401, reason: "Unauthorized"},
		{name: "two words", method: "GET", path: one, headers: []string{"Authorization", "Bearer " + aliceToken + " x"}, code: 401, reason: "Unauthorized"},
		{name: "huge token", method: "GET", path: one, headers: []string{"Authorization", "Bearer " + strings.Repeat("x", maxToken+1)}, code: 401, reason: "Unauthorized"},
		{name: "unknown token", method: "GET", path: one, headers: []string{"Authorization", "Bearer somebody"}, code: 401, reason: "Unauthorized", says: "expired", header: "WWW-Authenticate", value: `Bearer realm="fairlead", error="invalid_token"`},

		{name: "may not list", method: "GET", path: "/v1/settings", lacks: "list fairlead.io", code: 403, reason: "Forbidden", says: `User "alice" cannot list resource "settings" in API group "fairlead.io"`},
		{name: "may not list the storage system's", method: "GET", path: one, lacks: "list longhorn.io", code: 403, reason: "Forbidden", says: `in API group "longhorn.io"`},
		{name: "may not change what it may not read", method: "PUT", path: one, body: set, lacks: "list fairlead.io", code: 403, reason: "Forbidden", says: "cannot list"},
		{name: "may not change the storage system's", method: "PUT", path: one, body: set, lacks: "patch longhorn.io", code: 403, reason: "Forbidden", says: `cannot patch resource "settings" in API group "longhorn.io"`},

		{name: "unknown setting", method: "GET", path: "/v1/settings/priority-class-of-nobody", code: 404, reason: "NotFound", says: "GET /v1/settings lists"},
		{name: "unknown setting changed", method: "PUT", path: "/v1/settings/nobody", body: set, code: 404, reason: "NotFound"},
		{name: "elsewhere", method: "GET", path: "/v2/settings", code: 404, reason: "NotFound"},
		{name: "below", method: "GET", path: one + "/status", code: 404, reason: "NotFound"},

		{name: "post", method: "POST", path: "/v1/settings", body: set, code: 405, reason: "MethodNotAllowed", header: "Allow", value: "GET, HEAD"},
		{name: "delete", method: "DELETE", path: one, code: 405, reason: "MethodNotAllowed", header: "Allow", value: "GET, HEAD, PUT"},

		{name: "form", method: "PUT", path: one, body: "value=x", headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, code: 415, reason: "UnsupportedMediaType"},
		{name: "no type", method: "PUT", path: one, body: set, headers: []string{"Content-Type", ""}, code: 415, reason: "UnsupportedMediaType"},
		{name: "no body", method: "PUT", path: one, code: 400, reason: "BadRequest"},
		{name: "no value", method: "PUT", path: one, body: `{}`, code: 400, reason: "BadRequest", says: `want {"value": "..."}`},
		{name: "null", method: "PUT", path: one, body: `{"value": null}`, code: 400, reason: "BadRequest"},
		{name: "a number", method: "PUT", path: one, body: `{"value": 3}`, code: 400, reason: "BadRequest"},
		{name: "misspelt", method: "PUT", path: one, body: `{"Value": "x"}`, code: 400, reason: "BadRequest"},
		{name: "too much", method: "PUT", path: one, body: `{"value": "x", "name": "y"}`, code: 400, reason: "BadRequest"},
		{name: "twice", method: "PUT", path: one, body: `{"value": "x", "value": "y"}`, code: 400, reason: "BadRequest"},
		{name: "trailing", method: "PUT", path: one, body: set + set, code: 400, reason: "BadRequest"},
		{name: "too large", method: "PUT", path: one, body: `{"value": "` + strings.Repeat("x", maxBody) + `"}`, code: 413, reason: "RequestEntityTooLarge"},

		{name: "another revision", method: "PUT", path: one, body: set, headers: []string{"If-Match", `"-.1"`}, code: 412, reason: "Conflict", says: "read it again"},
		{name: "weak tags match nothing", method: "PUT", path: one, body: set, headers: []string{"If-Match", `W/"-.999"`}, code: 412, reason: "Conflict"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, theirs(""))
			delete(f.may, test.lacks)
			w := f.do(test.method, test.path, test.body, test.headers...)
			must.True(t, w.Code == test.code, "got %d %s", w.Code, w.Body)
			must.Equal(t, w.Header().Get("Content-Type"), "application/json", "content type")
			if w.Code >= 400 {
				if got := status(t, w); got.Kind != "Status" || got.Code != int32(test.code) || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
					t.Errorf("got %+v", got)
				}
				must.Check(t, len(f.writes) == 0, "written: %+v", f.writes)
			}
			if got := w.Header().Get(test.header); test.header != "" && got != test.value {
				t.Errorf("%s: got %q, want %q", test.header, got, test.value)
			}
			must.Check(t, !strings.Contains(f.log.String(), aliceToken) && !strings.Contains(f.log.String(), ownToken), "a token is in the log: %s", f.log)
		})
	}
}

func TestEverySettingIsListed(t *testing.T) {
	const value, later = "kube-system/storage-net", "of-a-later-longhorn"
	f := newFixture(t, ours(nil), theirs(value), objects.LonghornSetting(later, "x"))
	var list v1.SettingList
	must.Do(t, json.Unmarshal(f.do("GET", "/v1/settings", "").Body.Bytes(), &list))
	must.True(t, len(list.Data) == len(catalog.All()) && slices.Equal(list.Unknown, []string{later}), "got %d settings, unknown %q", len(list.Data), list.Unknown)
	got := list.Data[0]
	must.Check(t, got.Name == settingName && got.Value == value && got.Source == "longhorn" && !got.Applied && got.Namespace == "longhorn-system",
		"got %+v", got)
}

func TestFailedReadIsBadGateway(t *testing.T) {
	f := newFixture(t)
	f.broken = true
	if w := f.do("GET", one, ""); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "EOF") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestRequestsAtOnceAreLimited(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	f := &fixture{handler: atMost(1)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(entered); <-release }))}
	done := make(chan struct{})
	go func() { f.do("GET", one, ""); close(done) }()
	<-entered
	w := f.do("GET", one, "")
	must.Check(t, w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "", "got %d", w.Code)
	close(release)
	<-done
}

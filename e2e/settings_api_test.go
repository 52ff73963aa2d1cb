package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

const notATaint = "a=b=c:NoSchedule"

// TestRESTIsBehindTheAPIServer uses settings through the REST API of the real binary and through its command line. Both have
// the rights that the API server gives their user, and return its messages.
func TestRESTIsBehindTheAPIServer(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	for _, account := range []string{"ops", "nobody"} {
		c.kubectl("-n", "default", "create", "serviceaccount", account)
	}
	c.kubectl("-n", namespace, "create", "rolebinding", "ops", "--clusterrole=fairlead-settings-editor", "--serviceaccount=default:ops")
	api := c.api()
	ops, nobody := c.token("ops"), c.token("nobody")

	t.Run("shows the values in effect", func(t *testing.T) {
		api := api.in(t)
		var list v1.SettingList
		api.get(ops, "/v1/settings", http.StatusOK, &list)
		if len(list.Data) != len(catalog.All()) {
			t.Errorf("%d settings", len(list.Data))
		}
		var one v1.Setting
		api.get(ops, "/v1/settings/priority-class", http.StatusOK, &one)
		if one.Value != "longhorn-critical" || one.Source != "longhorn" || !one.Applied {
			t.Errorf("got %+v", one)
		}
	})
	t.Run("gives no more rights than the API server", func(t *testing.T) {
		api := api.in(t)
		if r := api.get("", "/v1/settings", http.StatusUnauthorized, nil); r.Header.Get("WWW-Authenticate") == "" {
			t.Error("no WWW-Authenticate")
		}
		api.get("made-up", "/v1/settings", http.StatusUnauthorized, nil)
		api.get(nobody, "/v1/settings", http.StatusForbidden, nil)
		api.put(nobody, "priority-class", critical, "", http.StatusForbidden, nil)
		api.get(ops, "/v1/settings/no-such", http.StatusNotFound, nil)
		if r := api.do(http.MethodDelete, ops, "/v1/settings/priority-class", nil, http.StatusMethodNotAllowed, nil); r.Header.Get("Allow") != "GET, HEAD, PUT" {
			t.Errorf("allowed is %q", r.Header.Get("Allow"))
		}
	})
	t.Run("refuses a malformed value with the webhook's message", func(t *testing.T) {
		c, api := &cluster{Sandbox: c.Sandbox, t: t}, api.in(t)
		var status metav1.Status
		api.put(ops, "taint-toleration", notATaint, "", http.StatusUnprocessableEntity, &status)
		_, words, _ := strings.Cut(status.Message, "is invalid: ")
		c.has(words, "must be <key>[=<value>]:<effect>")
		c.has(c.refusedSet(system, "taint-toleration", notATaint), words)
	})
	c.run("command line: the setting can be applied", func(t *testing.T, c *cluster) {
		c.has(c.cli(0, "plan", "--set", "priority-class="+critical), "csi-attacher")
		c.has(c.cli(1, "plan", "--set", "taint-toleration="+notATaint), "must be <key>[=<value>]:<effect>")
	})
	c.run("command line: check looks at the cluster and at Fairlead", func(t *testing.T, c *cluster) {
		out := c.cli(0, "check")
		c.has(out, "cert-manager", "kube-system/storage-net", "leads")
		c.has(c.cli(0, "version"), "cluster: fairlead-controller fairlead:")
	})
	c.attachedEverywhere("pvc-1")
	c.run("command line: the setting would wait", func(t *testing.T, c *cluster) {
		c.has(c.cli(2, "plan", "--set", "priority-class="+critical), "1 volume attached: pvc-1")
		if now := c.field(system, "priority-class", "{.value}"); now != "longhorn-critical" {
			t.Errorf("the plan changed it to %s", now)
		}
	})
	t.Run("accepts a value that waits", func(t *testing.T) {
		c, api := &cluster{Sandbox: c.Sandbox, t: t}, api.in(t)
		tag := api.get(ops, "/v1/settings/priority-class", http.StatusOK, nil).Header.Get("ETag")
		var one v1.Setting
		changed := api.put(ops, "priority-class", critical, tag, http.StatusOK, &one)
		if one.Applied || one.Value != critical || len(one.Warnings) == 0 || !strings.Contains(strings.Join(one.Warnings, " "), "pvc-1 (node-1)") {
			t.Errorf("got %+v", one)
		}
		if changed.Header.Get("ETag") == tag {
			t.Error("the ETag has not changed")
		}
		api.put(ops, "priority-class", nodeCritical, tag, http.StatusPreconditionFailed, nil)
		if now := c.field(system, "priority-class", "{.value}"); now != critical {
			t.Errorf("it is %s", now)
		}
		c.waitSetting(system, "priority-class", "false")
		api.get(ops, "/v1/settings/priority-class", http.StatusOK, &one)
		if one.Applied || len(one.Blockers) == 0 || one.Blockers[0].Name != "pvc-1" || !strings.Contains(one.Reason, "when these volumes are detached: pvc-1") {
			t.Errorf("got %+v", one)
		}
	})
	c.run("command line: lists a setting that waits", func(t *testing.T, c *cluster) {
		c.has(c.cli(2, "settings", "priority-class"), "pvc-1")
		out := c.cli(0, "settings")
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); fields[0] == "priority-class" {
				if fields[1] != critical || fields[2] != "longhorn" || fields[3] != "false" || !strings.Contains(line, "when these volumes are detached: pvc-1") {
					t.Errorf("got %s", line)
				}
				return
			}
		}
		t.Errorf("priority-class is missing:\n%s", out)
	})
}

// api is the REST API of the first webhook.
type api struct {
	*testing.T
	http.Client
	url string
}

func (c *cluster) api() api {
	c.t.Helper()
	var secret corev1.Secret
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: registration.Namespace, Name: "fairlead-webhook-tls"}, &secret))
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		c.t.Fatal("the CA can't be read")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}}
	c.t.Cleanup(transport.CloseIdleConnections)
	for _, r := range c.Replicas() {
		if r.APIAddress != "" {
			return api{c.t, http.Client{Transport: transport}, "https://" + r.APIAddress}
		}
	}
	c.t.Fatal("no process serves the REST API")
	return api{}
}

// in is the same for a subtest.
func (a api) in(t *testing.T) api {
	a.T = t
	return a
}

func (c *cluster) token(account string) string {
	c.t.Helper()
	return strings.TrimSpace(c.kubectl("-n", "default", "create", "token", account))
}

func (a api) get(token, path string, code int, into any) *http.Response {
	a.Helper()
	return a.do(http.MethodGet, token, path, nil, code, into)
}

// put changes a value, with a tag only if the setting is unchanged.
func (a api) put(token, name, value, tag string, code int, into any) *http.Response {
	a.Helper()
	return a.do(http.MethodPut, token, "/v1/settings/"+name, &body{tag, v1.SettingChange{Value: &value}}, code, into)
}

type body struct {
	tag    string
	change v1.SettingChange
}

// do sends a request, and wants an answer with that code.
func (a api) do(method, token, path string, b *body, code int, into any) *http.Response {
	a.Helper()
	var content io.Reader
	if b != nil {
		text, err := json.Marshal(b.change)
		must.Do(a, err)
		content = strings.NewReader(string(text))
	}
	request, err := http.NewRequestWithContext(a.Context(), method, a.url+path, content)
	must.Do(a, err)
	if b != nil {
		request.Header.Set("Content-Type", "application/json")
		if b.tag != "" {
			request.Header.Set("If-Match", b.tag)
		}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.Do(request)
	must.Do(a, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Do(a, err)
	if response.StatusCode != code {
		a.Fatalf("%s %s: got %s, not %d: %s", method, path, response.Status, code, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			a.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return response
}

// cli runs the binary's command line as the administrator, wants an exit code, and returns the output.
func (c *cluster) cli(code int, args ...string) string {
	c.t.Helper()
	binary, err := filepath.Abs(os.Getenv("FAIRLEAD_BINARY"))
	c.must(err)
	out, got := c.output(c.t.TempDir(), c.State.Kubeconfig, binary, args...)
	if got != code {
		c.t.Errorf("%v: exit code %d, want %d:\n%s", args, got, code, out)
	}
	return out
}

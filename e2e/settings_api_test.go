package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/webhook"
)

const notATaint = "a=b=c:NoSchedule"

// TestRESTIsBehindTheAPIServer talks to the settings through the REST API of the
// real binary and through its command line: both may what the API server lets
// their user do, and say what it says.
func TestRESTIsBehindTheAPIServer(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	for _, account := range []string{"ops", "nobody"} {
		c.kubectl("-n", "default", "create", "serviceaccount", account)
	}
	c.kubectl("-n", namespace, "create", "rolebinding", "ops", "--clusterrole=fairlead-settings-editor", "--serviceaccount=default:ops")
	api := c.api()
	ops, nobody := c.token("ops"), c.token("nobody")

	t.Run("it shows what is in force", func(t *testing.T) {
		api := api.in(t)
		var list v1.SettingList
		api.get(ops, "/v1/settings", http.StatusOK, &list)
		if len(list.Data) != len(catalog.All()) {
			t.Errorf("%d settings", len(list.Data))
		}
		var one v1.Setting
		api.get(ops, "/v1/settings/priority-class", http.StatusOK, &one)
		if one.Value != "longhorn-critical" || one.Source != "longhorn" || !one.Applied || one.Profile != "longhorn" {
			t.Errorf("got %+v", one)
		}
	})
	t.Run("it lets nobody do more than the API server does", func(t *testing.T) {
		api := api.in(t)
		if r := api.get("", "/v1/settings", http.StatusUnauthorized, nil); r.Header.Get("WWW-Authenticate") == "" {
			t.Error("it does not say how to authenticate")
		}
		api.get("made-up", "/v1/settings", http.StatusUnauthorized, nil)
		api.get(nobody, "/v1/settings", http.StatusForbidden, nil)
		api.put(nobody, "priority-class", critical, "", http.StatusForbidden, nil)
		api.get(ops, "/v1/settings/no-such", http.StatusNotFound, nil)
		if r := api.do(http.MethodDelete, ops, "/v1/settings/priority-class", nil, http.StatusMethodNotAllowed, nil); r.Header.Get("Allow") != "GET, HEAD, PUT" {
			t.Errorf("allowed is %q", r.Header.Get("Allow"))
		}
	})
	t.Run("a malformed value is refused in the webhook's words", func(t *testing.T) {
		c, api := &cluster{Sandbox: c.Sandbox, t: t}, api.in(t)
		var status metav1.Status
		api.put(ops, "taint-toleration", notATaint, "", http.StatusUnprocessableEntity, &status)
		says := c.refused("-n", namespace, "patch", system, "taint-toleration", "--type=merge", "-p", `{"value":"`+notATaint+`"}`)
		_, words, _ := strings.Cut(status.Message, "is invalid: ")
		if !strings.Contains(words, "must be <key>[=<value>]:<effect>") || !strings.Contains(says, words) {
			t.Errorf("it says %s\nkubectl: %s", status.Message, says)
		}
	})
	t.Run("the command line: nothing keeps it from being applied", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		if out, code := c.cli("plan", "--set", "priority-class="+critical); code != 0 || !strings.Contains(out, "csi-attacher") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		if out, code := c.cli("plan", "--set", "taint-toleration="+notATaint); code != 1 || !strings.Contains(out, "must be <key>[=<value>]:<effect>") {
			t.Errorf("a malformed value: exit code %d:\n%s", code, out)
		}
	})
	c.attachedEverywhere("pvc-1")
	t.Run("the command line: it would wait", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		out, code := c.cli("plan", "--set", "priority-class="+critical)
		if code != 2 || !strings.Contains(out, "1 volume attached: pvc-1") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		if now := c.kubectl("-n", namespace, "get", system, "priority-class", "-o", "jsonpath={.value}"); now != "longhorn-critical" {
			t.Errorf("the plan changed it to %s", now)
		}
	})
	t.Run("a value that waits is accepted, and says so", func(t *testing.T) {
		c, api := &cluster{Sandbox: c.Sandbox, t: t}, api.in(t)
		tag := api.get(ops, "/v1/settings/priority-class", http.StatusOK, nil).Header.Get("ETag")
		var one v1.Setting
		changed := api.put(ops, "priority-class", critical, tag, http.StatusOK, &one)
		if one.Applied || one.Value != critical || len(one.Warnings) == 0 || !strings.Contains(strings.Join(one.Warnings, " "), "pvc-1 (node-1)") {
			t.Errorf("got %+v", one)
		}
		if changed.Header.Get("ETag") == tag {
			t.Error("the ETag is that of before")
		}
		api.put(ops, "priority-class", mostPressing, tag, http.StatusPreconditionFailed, nil)
		if now := c.kubectl("-n", namespace, "get", system, "priority-class", "-o", "jsonpath={.value}"); now != critical {
			t.Errorf("it is %s", now)
		}
		c.waitSetting(system, "priority-class", "false")
		api.get(ops, "/v1/settings/priority-class", http.StatusOK, &one)
		if one.Applied || len(one.Blockers) == 0 || one.Blockers[0].Name != "pvc-1" || !strings.Contains(one.Reason, "when these volumes are detached: pvc-1") {
			t.Errorf("got %+v", one)
		}
	})
	t.Run("the command line: settings show the truth", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		out, code := c.cli("settings")
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); fields[0] == "priority-class" {
				if fields[1] != critical || fields[2] != "longhorn" || fields[3] != "false" || !strings.Contains(line, "when these volumes are detached: pvc-1") {
					t.Errorf("it says %s", line)
				}
				return
			}
		}
		t.Errorf("it says nothing of it:\n%s", out)
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
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: webhook.Namespace, Name: "fairlead-webhook-tls"}, &secret))
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
	c.t.Fatal("nobody serves it")
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

// put changes a value, where it is as tag says if there is one.
func (a api) put(token, name, value, tag string, code int, into any) *http.Response {
	a.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	if tag != "" {
		header.Set("If-Match", tag)
	}
	return a.do(http.MethodPut, token, "/v1/settings/"+name, &body{header, v1.SettingChange{Value: &value}}, code, into)
}

type body struct {
	http.Header
	change v1.SettingChange
}

// do asks, and wants an answer with that code.
func (a api) do(method, token, path string, b *body, code int, into any) *http.Response {
	a.Helper()
	var content io.Reader
	if b != nil {
		text, err := json.Marshal(b.change)
		if err != nil {
			a.Fatal(err)
		}
		content = strings.NewReader(string(text))
	}
	request, err := http.NewRequestWithContext(a.Context(), method, a.url+path, content)
	if err != nil {
		a.Fatal(err)
	}
	if b != nil {
		request.Header = b.Header
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.Do(request)
	if err != nil {
		a.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.Fatal(err)
	}
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

// cli runs the binary's command line as the administrator, and returns what it prints and its exit code.
func (c *cluster) cli(args ...string) (string, int) {
	c.t.Helper()
	binary, err := filepath.Abs(os.Getenv("FAIRLEAD_BINARY"))
	c.must(err)
	out, err := exec.CommandContext(c.t.Context(), binary, append(args, "--kubeconfig="+c.State.Kubeconfig)...).CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return string(out), failed.ExitCode()
	}
	c.must(err)
	return string(out), 0
}

package conformance_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fairlead-io/fairlead/e2e/conformance"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// drainDelay of servers in tests.
const drainDelay = time.Second

const (
	servingName = "webhook.test.svc"
	path        = "/mutate/longhorn/client-pods"
)

// clientPod is a CSI plugin pod that gets a network.
func clientPod(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	pod := objects.Pod("longhorn-system", "longhorn-csi-plugin-1", "node-1")
	pod.TypeMeta.APIVersion, pod.TypeMeta.Kind = "v1", "Pod"
	pod.Labels = map[string]string{"app": "longhorn-csi-plugin"}
	raw, err := json.Marshal(pod)
	must.Do(t, err)
	request := &admissionv1.AdmissionRequest{UID: "conformance", Name: pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create}
	request.Kind.Version, request.Kind.Kind = "v1", "Pod"
	request.Resource.Version, request.Resource.Resource = "v1", "pods"
	request.Object.Raw = raw
	return request
}

var network = objects.Network("storage-net", longhorn.Profile().EndpointInterface)

// fairlead is the handler of Fairlead's rule for client pods.
func fairlead(t *testing.T) http.Handler {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	profile := webhook.Profile{
		Profile: longhorn.Profile(), Duties: c.Profiles[0].Duties,
		Record: func() rollout.Record { return rollout.Record{Clients: network, Servers: network} },
	}
	return webhook.NewRouter(c, []webhook.Profile{profile}, nil, nil, admission.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

// defaulter is the same rule in the style of controller-runtime.
type defaulter struct{}

func (defaulter) Default(_ context.Context, pod *corev1.Pod) (err error) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[storage.NetworksAnnotation], err = storage.AddNetwork(pod.Annotations[storage.NetworksAnnotation], pod.Namespace, network)
	return err
}

func controllerRuntime(t *testing.T) http.Handler {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	handler, err := ctrladmission.StandaloneWebhook(ctrladmission.WithDefaulter(scheme.Scheme, defaulter{}), ctrladmission.StandaloneOptions{MetricsPath: path})
	must.Do(t, err)
	return handler
}

// certificate is a certs.Source that can be replaced.
type certificate struct {
	current atomic.Pointer[tls.Certificate]
}

func (c *certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}
func (*certificate) Start(context.Context) error { return nil }
func (*certificate) Healthy() bool               { return true }

// renew makes a new certificate, and returns it for the client to trust.
func (c *certificate) renew(t *testing.T) *x509.Certificate {
	t.Helper()
	made, err := certtest.SelfSigned(servingName, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must.Do(t, err)
	c.current.Store(&made)
	return made.Leaf
}

// serve runs Fairlead's server until the returned function ends it.
func serve(t *testing.T, source *certificate) (address string, end func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Do(t, err)
	address = listener.Addr().String()
	must.Do(t, listener.Close())
	server := &admission.Server{Address: address, Source: source, Handler: fairlead(t), DrainDelay: drainDelay, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	end = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(end)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address, end
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// client closes its idle connections at the end: a server waits for one that it has never read from.
func client(t *testing.T, trusted *x509.CertPool, dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	t.Helper()
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: servingName}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 200, DialContext: dial,
	}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func ofFairlead(t *testing.T) []conformance.Result {
	source, trusted := &certificate{}, x509.NewCertPool()
	trusted.AddCert(source.renew(t))
	address, _ := serve(t, source)
	return conformance.Run(t.Context(), conformance.Webhook{URL: "https://" + address + path, Client: client(t, trusted, nil), Request: clientPod(t)})
}

func ofControllerRuntime(t *testing.T) []conformance.Result {
	server := httptest.NewUnstartedServer(controllerRuntime(t))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	server.Client().Timeout = 10 * time.Second
	return conformance.Run(t.Context(), conformance.Webhook{URL: server.URL, Client: server.Client(), Request: clientPod(t)})
}

// Fairlead passes all checks. The page of docs has its report, and that of controller-runtime's own handler.
func TestFairleadConforms(t *testing.T) {
	results := map[string][]conformance.Result{"Fairlead": ofFairlead(t)}
	for _, r := range results["Fairlead"] {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
	other := "controller-runtime " + version(t, "sigs.k8s.io/controller-runtime")
	results[other] = ofControllerRuntime(t)
	report := conformance.Markdown([]string{"Fairlead", other}, results)
	const page = "../../docs/reference/conformance.md"
	text, err := os.ReadFile(page)
	must.Do(t, err)
	const begin = "<!-- The table is generated: UPDATE=1 go test ./e2e/conformance -->\n"
	intro, _, found := strings.Cut(string(text), begin)
	must.Equal(t, found, true)
	if want := intro + begin + "\n" + report; os.Getenv("UPDATE") != "" {
		must.Do(t, os.WriteFile(page, []byte(want), 0o644))
	} else if string(text) != want {
		t.Errorf("%s has another report: run UPDATE=1 go test ./e2e/conformance and look at what changed; it is\n%s", page, report)
	}
}

// version of a module, from go.mod: test binaries do not know it.
func version(t *testing.T, module string) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	must.Do(t, err)
	for line := range strings.Lines(string(text)) {
		if version, found := strings.CutPrefix(strings.TrimSpace(line), module+" "); found {
			return version
		}
	}
	t.Fatalf("go.mod does not have %s", module)
	return ""
}

// A handler that breaks the rules is reported.
func TestBadWebhooksAreReported(t *testing.T) {
	allow := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"x","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9hcHAiLCJ2YWx1ZSI6Imxvbmdob3JuLWNzaS1wbHVnaW4ifV0="}}`)
	}
	// The answer has the right UID, and is wrong otherwise.
	var busy sync.Mutex
	random := 0
	careless := func(w http.ResponseWriter, r *http.Request) {
		busy.Lock() // one at a time, also while a body is slow
		defer busy.Unlock()
		random++
		body, _ := io.ReadAll(r.Body)
		uid := "none"
		if found := regexp.MustCompile(`"uid":"([^"]*)"`).FindSubmatch(body); found != nil {
			uid = string(found[1])
		}
		patch, _ := json.Marshal([]map[string]string{{"op": "add", "path": "/metadata/name", "value": fmt.Sprint(random)}})
		answer := admissionv1.AdmissionReview{Response: &admissionv1.AdmissionResponse{UID: types.UID(uid), Allowed: true, Patch: patch, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}}
		answer.APIVersion, answer.Kind = "admission.k8s.io/v1", "AdmissionReview"
		_ = json.NewEncoder(w).Encode(answer)
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		fails   []string
	}{
		"another's UID": {allow, []string{"answers with the request's UID", "answers 100 requests at once", "sends no patch that changes nothing", "changes nothing the second time"}},
		"careless": {careless, []string{
			"does not allow what it can't read", "does not allow a kind that it is not for", "does not trust duplicate fields", "limits the size of a request",
			"serves POST only", "answers others while a body is slow", "changes nothing the second time", "answers the same to the same request", "answers the same to a dry run",
		}},
	} {
		server := httptest.NewTLSServer(test.handler)
		passed := map[string]bool{}
		for _, r := range conformance.Run(t.Context(), conformance.Webhook{URL: server.URL, Client: server.Client(), Request: clientPod(t)}) {
			passed[r.Name] = r.Err == nil
		}
		server.CloseClientConnections()
		server.Close()
		for _, check := range test.fails {
			if passed[check] {
				t.Errorf("%s: %s: passed", name, check)
			}
		}
	}
}

// Two servers take turns behind one address, as behind a Service: no request is lost or failed.
func TestNothingIsLostInRollingRestart(t *testing.T) {
	source, trusted := &certificate{}, x509.NewCertPool()
	trusted.AddCert(source.renew(t))
	var ready atomic.Value
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, ready.Load().(string))
	}
	address, end := serve(t, source)
	ready.Store(address)
	w := conformance.Webhook{URL: "https://service" + path, Client: client(t, trusted, dial), Request: clientPod(t)}
	load, err := conformance.During(t.Context(), w, 4, func(context.Context) error {
		for range 3 {
			next, endNext := serve(t, source)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				end()
			}()
			time.Sleep(drainDelay / 5) // the Service has the draining server for a while
			ready.Store(next)
			<-ended
			end = endNext
		}
		return nil
	})
	must.Do(t, err)
	t.Log(load)
	if !load.OK() {
		t.Error(load)
	}
}

// A renewed certificate is served to new connections; those that are open go on.
func TestNothingIsLostInCertificateRotation(t *testing.T) {
	source, trusted := &certificate{}, x509.NewCertPool()
	trusted.AddCert(source.renew(t))
	next, err := certtest.SelfSigned(servingName, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must.Do(t, err)
	trusted.AddCert(next.Leaf) // the bundle has both before the certificate is replaced
	address, _ := serve(t, source)
	c := client(t, trusted, nil)
	load, err := conformance.During(t.Context(), conformance.Webhook{URL: "https://" + address + path, Client: c, Request: clientPod(t)}, 4, func(context.Context) error {
		source.current.Store(&next)
		for range 20 {
			c.CloseIdleConnections()
			time.Sleep(10 * time.Millisecond) // requests go on meanwhile
		}
		return nil
	})
	must.Do(t, err)
	if !load.OK() {
		t.Error(load)
	}
	c.CloseIdleConnections()
	response, err := c.Get("https://" + address + path)
	must.Do(t, err)
	defer response.Body.Close()
	must.True(t, response.TLS.PeerCertificates[0].Equal(next.Leaf), "the new certificate is not served")
}

// What breaks is counted.
func TestLostRequestsAreCounted(t *testing.T) {
	source, trusted := &certificate{}, x509.NewCertPool()
	trusted.AddCert(source.renew(t))
	address, end := serve(t, source)
	end()
	load, err := conformance.During(t.Context(), conformance.Webhook{URL: "https://" + address + path, Client: client(t, trusted, nil), Request: clientPod(t)}, 1, func(context.Context) error {
		time.Sleep(20 * time.Millisecond) // requests are lost meanwhile
		return errors.ErrUnsupported
	})
	if !errors.Is(err, errors.ErrUnsupported) || load.Lost == 0 || load.OK() {
		t.Errorf("%s, %v", load, err)
	}
}

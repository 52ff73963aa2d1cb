// Package conformance_test calls the webhook from outside, as the API server does: protocol, patches, bad and slow requests,
// and what is lost in a restart. The rules are those of Kubernetes' documentation of dynamic admission control, and of
// the API server's own client (k8s.io/apiserver, pkg/admission/plugin/webhook).
package conformance_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
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

var network = objects.Network("storage-net", longhorn.DefaultNames().EndpointInterface)

// fairlead is the handler of Fairlead's rule for client pods.
func fairlead(t *testing.T) http.Handler {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	rules := &webhook.Longhorn{
		Names: longhorn.DefaultNames(), Duties: c.Longhorn.Duties,
		Record: func(context.Context) (rollout.Record, error) {
			return rollout.Record{Clients: network, Servers: network}, nil
		},
	}
	return webhook.NewRouter(rules, nil, nil, admission.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
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

func newReviewer(t *testing.T) reviewer {
	t.Helper()
	source, trusted := &certificate{}, x509.NewCertPool()
	trusted.AddCert(source.renew(t))
	address, _ := serve(t, source)
	return reviewer{url: "https://" + address + path, client: client(t, trusted, nil), request: clientPod(t)}
}

// load sends requests while something happens, and returns the errors. It keeps connections open as the API server
// does, and opens a new one when the webhook closes it.
func (w reviewer) load(t *testing.T, happens func()) error {
	t.Helper()
	var errs [4]error
	done := make(chan struct{})
	var senders sync.WaitGroup
	for s := range errs {
		senders.Go(func() {
			for n := s; ; n += len(errs) {
				select {
				case <-done:
					return
				default:
					errs[s] = errors.Join(errs[s], w.send(t.Context(), n))
				}
			}
		})
	}
	happens()
	close(done)
	senders.Wait()
	return errors.Join(errs[:]...)
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
	w := reviewer{url: "https://service" + path, client: client(t, trusted, dial), request: clientPod(t)}
	must.Do(t, w.load(t, func() {
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
	}))
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
	w := reviewer{url: "https://" + address + path, client: c, request: clientPod(t)}
	must.Do(t, w.load(t, func() {
		source.current.Store(&next)
		for range 20 {
			c.CloseIdleConnections()
			time.Sleep(10 * time.Millisecond) // requests go on meanwhile
		}
	}))
	c.CloseIdleConnections()
	response, err := c.Get("https://" + address + path)
	must.Do(t, err)
	defer response.Body.Close()
	must.True(t, response.TLS.PeerCertificates[0].Equal(next.Leaf), "the new certificate is not served")
}

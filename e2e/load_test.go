package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// load creates pods as dry runs, as fast as the API server allows. It keeps errors, among them pods without their network.
type load struct {
	sent   atomic.Int64
	mu     sync.Mutex
	errors []error
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (c *cluster) startLoad(workers int) *load {
	ctx, cancel := context.WithCancel(c.t.Context())
	l := &load{cancel: cancel}
	for w := range workers {
		l.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				pod := serverPod(fmt.Sprintf("load-%d-%d", w, i))
				err := c.Client.Create(ctx, pod, client.DryRunAll)
				if ctx.Err() != nil {
					return
				}
				l.sent.Add(1)
				if err == nil && pod.Annotations[multus.NetworksAnnotation] == "" {
					err = fmt.Errorf("pod %s has no network", pod.Name)
				}
				if err != nil {
					l.mu.Lock()
					l.errors = append(l.errors, err)
					l.mu.Unlock()
				}
			}
		})
	}
	return l
}

// finish sends 100 more requests, and wants no failed request and no lost mutation.
func (l *load) finish(c *cluster, what string) {
	c.t.Helper()
	enough := l.sent.Load() + 100
	c.waitIs(what+": 100 more requests", time.Minute, true, func() any { return l.sent.Load() >= enough })
	l.cancel()
	l.done.Wait()
	c.t.Logf("%s: %d pods created, %d errors", what, l.sent.Load(), len(l.errors))
	if len(l.errors) > 0 {
		c.t.Errorf("%s: %d of %d failed; the first error: %v", what, len(l.errors), l.sent.Load(), l.errors[0])
	}
}

// TestNothingIsLostUnderLoad restarts the webhook's replicas one by one, then rotates their certificate, while pods are created.
func TestNothingIsLostUnderLoad(t *testing.T) {
	c := newCluster(t, options{webhooks: 2, controllers: 1})
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(netA + "@lhnet2")

	rolling := c.startLoad(4)
	for round := range 2 {
		for i, old := range c.Replicas()[:2] {
			if round > 0 {
				old = c.Replicas()[3+i]
			}
			// The new replica comes first, as in a Deployment with maxUnavailable 0.
			fresh, err := c.StartReplica(t.Context(), sandbox.WebhookDeployment, fmt.Sprintf("webhook-%d-%d", round+1, i))
			c.must(err)
			c.must(fresh.WaitReady(t.Context()))
			time.Sleep(500 * time.Millisecond) // the forwarder probes a new backend every 50 ms
			c.must(old.Stop())
		}
	}
	rolling.finish(c, "rolling restart")

	rotating := c.startLoad(4)
	before := c.servedSerial()
	c.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: "fairlead-webhook-tls"}})
	c.waitIs("another certificate is served", time.Minute, true, func() any { return c.servedSerial().Cmp(before) != 0 })
	rotating.finish(c, "certificate rotation")
}

// servedSerial is the serial number of the certificate that the webhook serves.
func (c *cluster) servedSerial() *big.Int {
	c.t.Helper()
	conn, err := tls.Dial("tcp", c.WebhookAddress(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // the certificate is read, nothing is sent
	c.must(err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber
}

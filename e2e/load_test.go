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
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/webhook"
)

// load creates pods, as dry runs, as fast as the API server lets it, and counts
// those that failed and those that came back without their network.
type load struct {
	sent, failed, unmutated atomic.Int64
	mu                      sync.Mutex
	first                   error
	cancel                  context.CancelFunc
	done                    sync.WaitGroup
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
				switch {
				case err != nil:
					l.failed.Add(1)
					l.note(err)
				case pod.Annotations[storage.NetworksAnnotation] == "":
					l.unmutated.Add(1)
					l.note(fmt.Errorf("pod %s came back without its network", pod.Name))
				}
			}
		})
	}
	return l
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = err
	}
}

// finish wants that not one request failed, nor one mutation was lost.
func (l *load) finish(t *testing.T, what string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); l.sent.Load() < 100 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond) // on a slow machine it takes longer to be a load
	}
	l.cancel()
	l.done.Wait()
	t.Logf("%s: %d pods created, %d failed, %d without their network", what, l.sent.Load(), l.failed.Load(), l.unmutated.Load())
	if l.sent.Load() < 100 {
		t.Errorf("%s: only %d pods were created: that is no load", what, l.sent.Load())
	}
	if l.failed.Load() != 0 || l.unmutated.Load() != 0 {
		t.Errorf("%s: %d failed, %d without their network; the first: %v", what, l.failed.Load(), l.unmutated.Load(), l.first)
	}
}

// TestNothingIsLostUnderLoad restarts the webhook's replicas one after the
// other, then rotates their certificate, while pods are created without a pause.
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
			// As a Deployment with maxUnavailable 0 does: the new one first.
			fresh, err := c.StartReplica(t.Context(), sandbox.WebhookDeployment, fmt.Sprintf("webhook-%d-%d", round+1, i))
			c.must(err)
			c.must(fresh.WaitReady(t.Context()))
			time.Sleep(500 * time.Millisecond) // the forwarder takes it up
			c.must(old.Stop())
		}
	}
	rolling.finish(t, "rolling restart")

	rotating := c.startLoad(4)
	before := c.servedSerial()
	c.must(c.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: webhook.Namespace, Name: "fairlead-webhook-tls"}}))
	c.eventually("the new certificate is served", time.Minute, func() error {
		if now := c.servedSerial(); now.Cmp(before) == 0 {
			return fmt.Errorf("still %s", now)
		}
		return nil
	})
	time.Sleep(2 * time.Second)
	rotating.finish(t, "certificate rotation")
}

// servedSerial is the serial number of the certificate that the webhook serves.
func (c *cluster) servedSerial() *big.Int {
	c.t.Helper()
	conn, err := tls.Dial("tcp", c.WebhookAddress(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // it is looked at, nothing is sent
	c.must(err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber
}

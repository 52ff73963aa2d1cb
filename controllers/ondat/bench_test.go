package ondat

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Latencies of a request that changes something, at the API server and at the control plane.
const (
	kubeLatency  = 5 * time.Millisecond
	ondatLatency = 5 * time.Millisecond
)

// standIn is what the released manager needs for a new volume at least: wait.Poll
// sleeps a second before it looks for the Service, and another for the Endpoints
// (-k8s-create-poll-interval), in one thread.
const standIn = 2 * time.Second

// BenchmarkNewVolumes publishes 1,000 new volumes: from the poll that brings them,
// over HTTP from the test bed's Ondat, until the last mount endpoint is set. One
// namespace, one Service and slice each.
func BenchmarkNewVolumes(b *testing.B) {
	const volumes = 1000
	for b.Loop() {
		b.StopTimer()
		w := newLoad(b, volumes)
		b.StartTimer()
		began := time.Now()
		w.publish(b, volumes)
		took := time.Since(began)
		b.ReportMetric(took.Seconds(), "s/1000volumes")
		b.ReportMetric((volumes * standIn).Seconds(), "s/1000volumes-serial-computed")
		b.ReportMetric((volumes*standIn).Seconds()/took.Seconds(), "times-faster")
	}
}

// load is the controller over an API server with latency.
type load struct {
	r    *Reconciler
	bed  *bed.Server
	kube *slowAPI
}

func newLoad(b *testing.B, volumes int) *load {
	w := newWorld(b) // for the credentials and the server
	l := &load{bed: w.Server, kube: newSlowAPI()}
	for i := range volumes {
		id := fmt.Sprintf("v-%d", i)
		l.kube.addClaim("apps", "data-"+id, "pv-"+id)
		l.bed.Provision("default-id", id, "pv-"+id, "data-"+id, "apps")
		l.bed.Attach(id, fmt.Sprintf("10.1.%d.%d:32001", i/250, i%250+1))
	}
	l.bed.Before(func(r *http.Request) {
		if r.Method != http.MethodGet {
			time.Sleep(ondatLatency)
		}
	})
	api, err := rest.New(rest.Options{Endpoint: w.endpoint, SecretPath: w.secret})
	must.Do(b, err)
	l.r = newReconciler(api, l.kube, l.kube)
	l.r.Events, l.r.Clock = w.Events, clock.RealClock{}
	must.Do(b, l.r.prepare(prometheus.NewRegistry()))
	return l
}

// publish polls and reconciles, so many volumes at a time as are configured.
func (l *load) publish(b *testing.B, volumes int) {
	ids, err := l.r.poll(context.Background())
	must.True(b, err == nil && len(ids) == volumes, "%d volumes, %v", len(ids), err)
	queue := make(chan string, len(ids))
	for _, id := range ids {
		queue <- id
	}
	close(queue)
	var group sync.WaitGroup
	for range l.r.Config.Concurrency {
		group.Go(func() {
			for id := range queue {
				if _, err := l.r.Reconcile(context.Background(), request(id)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	byPhase, _, _ := l.r.table.count()
	must.True(b, byPhase[published] == volumes, "got %v", byPhase)
}

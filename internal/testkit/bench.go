package testkit

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// TB is a test, a benchmark, or a property test.
type TB = must.TB

// Noon is when tests begin.
var Noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Bench is what stands around a controller in a test. Its API is used as a user does;
// the controller has a client of its own.
type Bench struct {
	TB
	*fakeapi.API
	// Client is the controller's, with the writes of the present leader.
	Client   *fakeapi.Client
	Clock    *clocktesting.FakeClock
	Events   *Recorder
	Registry *prometheus.Registry
	Log      *slog.Logger
}

// NewBench makes a bench over an API that has objects.
func NewBench(t TB, api *fakeapi.API, objects ...client.Object) *Bench {
	t.Helper()
	b := &Bench{TB: t, API: api, Clock: clocktesting.NewFakeClock(Noon), Events: &Recorder{}, Log: slog.New(slog.DiscardHandler)}
	for _, o := range objects {
		b.Must(api.Seed(context.Background(), o))
	}
	b.NewLeader()
	return b
}

// NewLeader gives the next leader its own client and metrics.
func (b *Bench) NewLeader() {
	b.Client, b.Registry = b.API.Client(), prometheus.NewRegistry()
	b.Client.Now = b.Clock.Now
}

// Must ends the test on an error.
func (b *Bench) Must(err error) { b.Helper(); Must(b.TB, err) }

// Must ends a test on an error.
func Must(t TB, err error) { t.Helper(); must.Do(t, err) }

// Value is a result without its error, which ends the test.
func Value[T any](t TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Context of the test, if it has one.
func (b *Bench) Context() context.Context {
	if t, ok := b.TB.(interface{ Context() context.Context }); ok {
		return t.Context()
	}
	return context.Background()
}

// Pass lets time pass.
func (b *Bench) Pass(d time.Duration) { b.Clock.Step(d) }

// Get reads an object. It returns nil if there is none.
func Get[T any, P interface {
	*T
	client.Object
}](t TB, reader client.Reader, namespace, name string) P {
	t.Helper()
	o := P(new(T))
	err := reader.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Must(t, err)
	return o
}

// Change writes a change of an object and of its status, as a user does.
func Change[T any, P interface {
	*T
	client.Object
}](b *Bench, namespace, name string, change func(P)) {
	b.Helper()
	o := Get[T, P](b.TB, b.API, namespace, name)
	if o == nil {
		b.Fatalf("%T %s/%s does not exist", o, namespace, name)
	}
	change(o)
	changed := o.DeepCopyObject().(client.Object)
	b.Must(b.API.Update(context.Background(), o))
	changed.SetResourceVersion(o.GetResourceVersion())
	if err := b.API.Status().Update(context.Background(), changed); !apierrors.IsNotFound(err) { // kinds without a status of their own
		b.Must(err)
	}
}

// Metric is the value of a metric that has these values of labels, and false if there is none.
// A histogram's value is the number of its observations.
func Metric(t TB, gatherer prometheus.Gatherer, name string, labels ...string) (value float64, found bool) {
	t.Helper()
	families := Value[[]*dto.MetricFamily](t)(gatherer.Gather())
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var have []string
			for _, l := range series.GetLabel() {
				have = append(have, l.GetValue())
			}
			missing := func(l string) bool { return !slices.Contains(have, l) }
			if family.GetName() == name && !slices.ContainsFunc(labels, missing) {
				value += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
				found = true
			}
		}
	}
	return value, found
}

// Metric is the value of a metric of the controller; 0 if there is none.
func (b *Bench) Metric(name string, labels ...string) float64 {
	b.Helper()
	value, _ := Metric(b.TB, b.Registry, name, labels...)
	return value
}

// Package admission serves admission reviews: it decodes the fields that a rule reads, asks the rule, and answers with
// patch operations or a denial with causes. It measures, logs and annotates each decision.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// Rule decides the reviews of one entry of a webhook configuration.
type Rule[V any] struct {
	// Name is <entry>, or longhorn/<entry>, as in metrics and logs.
	Name string
	// Kinds that the entry is for.
	Kinds []metav1.GroupVersionKind
	// Deletes: the rule judges deletions too, whose reviews have only an old object.
	Deletes bool
	// Decide returns an error only where the failure policy shall decide.
	Decide func(context.Context, *Request[V]) (Decision, error)
}

// Entry is the rule of one entry, whatever its view.
type Entry interface {
	// Handler serves the rule.
	Handler(*Limit, *Metrics, *slog.Logger) http.Handler
	// Review decides a request without HTTP, as `fairlead review` does.
	Review(context.Context, *admissionv1.AdmissionRequest) (Decision, error)
}

// Review decides a request. It returns an error if the request is malformed, or where the failure policy shall decide.
func (rule Rule[V]) Review(ctx context.Context, request *admissionv1.AdmissionRequest) (Decision, error) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		return Decision{}, fmt.Errorf("writing the review: %w", err)
	}
	decoded, err := decodeReview[V](body, rule.Kinds, rule.Deletes)
	if err != nil {
		return Decision{}, err
	}
	return rule.decide(ctx, decoded)
}

// decide is the decision with warnings about misspelled annotations.
func (rule Rule[V]) decide(ctx context.Context, request *Request[V]) (Decision, error) {
	decision, err := rule.Decide(ctx, request)
	if o, ok := any(request.Object).(annotated); ok && request.Object != nil && err == nil {
		decision.Warnings = append(decision.Warnings, validators.CheckAnnotations(o.AnnotationKeys())...)
	}
	return decision, err
}

// Handler serves the rule.
func (rule Rule[V]) Handler(limit *Limit, metrics *Metrics, log *slog.Logger) http.Handler {
	log = log.With("rule", rule.Name)
	observed := metrics.forRule(rule.Name)
	refuse := refuser(observed, log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		held, err := limit.reserve(r)
		if err != nil {
			refuse(w, r, started, err)
			return
		}
		defer held.release()
		request, err := readReview[V](w, r, held, rule.Kinds, rule.Deletes)
		if err != nil {
			refuse(w, r, started, err)
			return
		}
		ctx, cancel := withDeadline(r)
		defer cancel()
		decision, err := rule.decide(ctx, request)
		if err != nil {
			observed.done(outcomeError, reasonNoFacts, started)
			log.LogAttrs(ctx, slog.LevelError, "could not decide", append(object(request), slog.Any("error", err))...)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response, err := decision.response(request.UID)
		if err != nil {
			observed.done(outcomeError, reasonBadResponse, started)
			log.LogAttrs(ctx, slog.LevelError, "could not answer", append(object(request), slog.Any("error", err))...)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := writeReview(w, response); err != nil {
			log.LogAttrs(ctx, slog.LevelWarn, "could not send the answer", append(object(request), slog.Any("error", err))...)
		}
		observed.done(decision.Outcome, decision.Reason, started)
		if decision.Outcome != string(mutators.Unchanged) {
			about := append(object(request), slog.String("reason", decision.Reason), slog.String("detail", decision.Detail))
			if len(decision.Warnings) > 0 {
				about = append(about, slog.Any("warnings", decision.Warnings))
			}
			log.LogAttrs(ctx, slog.LevelInfo, decision.Outcome, about...)
		}
	})
}

// refuser answers reviews that are not decided. Anyone may send them: the log has at most one line a second.
func refuser(observed ruleMetrics, log *slog.Logger) func(http.ResponseWriter, *http.Request, time.Time, error) {
	lines := &rate.Sometimes{Interval: time.Second}
	return func(w http.ResponseWriter, r *http.Request, started time.Time, err error) {
		status, reason := http.StatusBadRequest, "bad review"
		if refused := (*badReview)(nil); errors.As(err, &refused) {
			status = refused.status
		}
		if status == http.StatusTooManyRequests {
			reason = reasonTooMany
			w.Header().Set("Retry-After", "1")
		}
		observed.done(outcomeError, reason, started)
		lines.Do(func() { log.Warn("refused a review", "status", status, "from", r.RemoteAddr, "error", err) })
		http.Error(w, err.Error(), status)
	}
}

// annotated is a view with annotations, whose names may be misspelled.
type annotated interface{ AnnotationKeys() iter.Seq[string] }

// object names the object of a review, with room for more attributes.
func object[V any](r *Request[V]) []slog.Attr {
	return append(make([]slog.Attr, 0, 12),
		slog.String("kind", r.Kind.Kind), slog.String("namespace", r.Namespace), slog.String("name", r.Name),
		slog.String("operation", string(r.Operation)), slog.String("user", r.UserInfo.Username),
		slog.Bool("dryRun", r.DryRun), slog.String("uid", r.UID))
}

// defaultDeadline is the default of a webhook's timeoutSeconds.
const defaultDeadline = 10 * time.Second

// withDeadline takes nine tenths of the timeout that the API server sends, so that the answer arrives in time.
func withDeadline(r *http.Request) (context.Context, context.CancelFunc) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 || timeout > 30*time.Second {
		timeout = defaultDeadline
	}
	return context.WithTimeout(r.Context(), timeout-timeout/10)
}

// Metrics of admission, by rule and result.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_admission_requests_total",
			Help: "Admission reviews by rule, outcome (mutated, unchanged, skipped, allowed, denied, error) and reason.",
		}, []string{"rule", "outcome", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fairlead_admission_duration_seconds",
			Help:    "Time from the first byte of a review read to its answer written, in seconds.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}, []string{"rule"}),
	}
	registry.MustRegister(m.requests, m.duration)
	return m
}

type ruleMetrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Observer
}

func (m *Metrics) forRule(rule string) ruleMetrics {
	requests := m.requests.MustCurryWith(prometheus.Labels{"rule": rule})
	// Prometheus does not see the increase from no series to 1.
	for _, reason := range []string{reasonNoFacts, reasonBadResponse, reasonTooMany} {
		requests.WithLabelValues(outcomeError, reason)
	}
	return ruleMetrics{requests, m.duration.WithLabelValues(rule)}
}

// Reasons of reviews that are not decided.
const (
	reasonNoFacts     = "facts unavailable"
	reasonBadResponse = "bad response"
	reasonTooMany     = "too many reviews"
)

func (m ruleMetrics) done(outcome, reason string, started time.Time) {
	m.requests.WithLabelValues(outcome, reason).Inc()
	m.duration.Observe(time.Since(started).Seconds())
}

package webhook

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// rule is one entry of a webhook configuration: the kinds that it may be sent
// and how it decides.
type rule[V any] struct {
	// name is <profile>/<entry>, as in metrics and logs.
	name  string
	kinds []metav1.GroupVersionKind
	// deletes: the rule judges deletions too, whose reviews have no object.
	deletes bool
	// decide returns an error only where the failure policy shall rule.
	decide func(context.Context, *Request[V]) (Decision, error)
}

// handle serves one rule.
func handle[V any](rule rule[V], door *door, metrics *Metrics, log *slog.Logger) http.Handler {
	log = log.With("rule", rule.name)
	observed := metrics.forRule(rule.name)
	refuse := refuser(observed, log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		visit, err := door.enter(r)
		if err != nil {
			refuse(w, r, started, err)
			return
		}
		defer visit.leave()
		request, err := readReview[V](w, r, visit, rule.kinds, rule.deletes)
		if err != nil {
			refuse(w, r, started, err)
			return
		}
		ctx, cancel := withDeadline(r)
		defer cancel()
		decision, err := rule.decide(ctx, request)
		if err != nil {
			observed.done(outcomeError, "facts unavailable", started)
			log.LogAttrs(ctx, slog.LevelError, "could not decide", append(object(request), slog.Any("error", err))...)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if o, ok := any(request.Object).(annotated); ok && request.Object != nil {
			decision.Warnings = append(decision.Warnings, validators.CheckAnnotations(o.AnnotationKeys())...)
		}
		response, err := decision.response(request.UID)
		if err != nil {
			observed.done(outcomeError, "bad response", started)
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

// refuser answers reviews that are not decided. Anyone may send those: the log has one line a second.
func refuser(observed ruleMetrics, log *slog.Logger) func(http.ResponseWriter, *http.Request, time.Time, error) {
	lines := &rate.Sometimes{Interval: time.Second}
	return func(w http.ResponseWriter, r *http.Request, started time.Time, err error) {
		status, reason := http.StatusBadRequest, "bad review"
		if refused := (*badReview)(nil); errors.As(err, &refused) {
			status = refused.status
		}
		if status == http.StatusTooManyRequests {
			reason = "too many reviews"
			w.Header().Set("Retry-After", "1")
		}
		observed.done(outcomeError, reason, started)
		lines.Do(func() { log.Warn("refused a review", "status", status, "from", r.RemoteAddr, "error", err) })
		http.Error(w, err.Error(), status)
	}
}

// annotated is a view whose annotations may be misspelled.
type annotated interface{ AnnotationKeys() iter.Seq[string] }

// object names what a review is about; there is room for what a line adds.
func object[V any](r *Request[V]) []slog.Attr {
	return append(make([]slog.Attr, 0, 12),
		slog.String("kind", r.Kind.Kind), slog.String("namespace", r.Namespace), slog.String("name", r.Name),
		slog.String("operation", string(r.Operation)), slog.String("user", r.UserInfo.Username),
		slog.Bool("dryRun", r.DryRun), slog.String("uid", r.UID))
}

// defaultDeadline holds where the API server names none; it is the default of
// a webhook's timeoutSeconds.
const defaultDeadline = 10 * time.Second

// withDeadline takes the deadline from the timeout parameter that the API
// server sends, less a little, so that the answer gets there in time.
func withDeadline(r *http.Request) (context.Context, context.CancelFunc) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 || timeout > 30*time.Second {
		timeout = defaultDeadline
	}
	return context.WithTimeout(r.Context(), timeout-timeout/10)
}

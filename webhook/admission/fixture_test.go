package admission

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/mutators"
)

// podHandler serves one rule, for pods.
func podHandler[V any](limit *Limit, decide func(context.Context, *Request[V]) Decision) http.Handler {
	rule := Rule[V]{Name: "longhorn/client-pods", Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}}}
	rule.Decide = func(ctx context.Context, r *Request[V]) (Decision, error) { return decide(ctx, r), nil }
	return rule.Handler(limit, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

func pass(context.Context, *Request[mutators.ClientPod]) Decision { return Decision{} }

func podReview(object string) string {
	return reviews.Of(reviews.Pod, `"namespace":"longhorn-system","operation":"CREATE","object":`+object)
}

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/webhook"
	fairleadadmission "github.com/fairlead-io/fairlead/webhook/admission"
)

// The two sides of the comparison.
const (
	fairlead          = "fairlead"
	controllerRuntime = "controller-runtime"
)

// path of the webhook for client pods.
const path = "/mutate/longhorn/client-pods"

// network is the clients' network in cases with a patch.
var network = multus.Attachment{
	Network:   multus.Network{Namespace: "kube-system", Name: "storage-net"},
	Interface: longhorn.DefaultNames().EndpointInterface,
}

// newHandler builds one side, with metrics and with logs at the production level.
// The logs are discarded, so that the speed of a terminal does not count.
func newHandler(side string, network multus.Attachment) (http.Handler, error) {
	logs := slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo})
	if side == fairlead {
		return newRouter(network, slog.New(logs))
	}
	ctrllog.SetLogger(logr.FromSlogHandler(logs))
	hook := admission.WithDefaulter(scheme.Scheme, defaulter{network})
	return admission.StandaloneWebhook(hook, admission.StandaloneOptions{MetricsPath: path})
}

func newRouter(network multus.Attachment, log *slog.Logger) (http.Handler, error) {
	configuration, err := config.Load("")
	if err != nil {
		return nil, err
	}
	rules := &webhook.Longhorn{
		Names:  longhorn.DefaultNames(),
		Duties: configuration.Longhorn.Duties,
		Record: func(context.Context) (rollout.Record, error) {
			return rollout.Record{Clients: network, Servers: network}, nil
		},
	}
	return webhook.NewRouter(rules, nil, nil, fairleadadmission.NewMetrics(prometheus.NewRegistry()), log), nil
}

// defaulter is Fairlead's rule in the style of controller-runtime: it changes the
// pod, and the framework computes the patch.
type defaulter struct{ network multus.Attachment }

var _ admission.Defaulter[*corev1.Pod] = defaulter{}

func (d defaulter) Default(_ context.Context, pod *corev1.Pod) error {
	before := pod.Annotations[multus.NetworksAnnotation]
	after, err := multus.AddNetwork(before, pod.Namespace, d.network)
	if err != nil || before == after {
		return err
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[multus.NetworksAnnotation] = after
	return nil
}

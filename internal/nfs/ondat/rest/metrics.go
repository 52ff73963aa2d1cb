package rest

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the released manager's, by their names. The label error is the Class
// of the error: the manager used its text, with a series for each URL and ID.
type metrics struct {
	helperSeconds  *prometheus.HistogramVec
	helpers        *prometheus.CounterVec
	inFlight       prometheus.Gauge
	requestSeconds *prometheus.HistogramVec
	requests       *prometheus.CounterVec
}

// Names of the helpers, as the released manager has them.
const (
	helperSetup   = "setup"
	helperReset   = "reset_api"
	helperList    = "list_shared_volumes"
	helperGet     = "get_volume"
	helperPublish = "set_external_endpoint"
)

// newMetrics makes the metrics; nil registers them nowhere.
func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		helperSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storageos_api_helper_duration_seconds", Help: "Distribution of the length of time api helpers take to complete.",
		}, []string{"function"}),
		helpers: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "storageos_api_helper_total", Help: "Number of api helper calls, partitioned by function name and kind of error.",
		}, []string{"function", "error"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "storageos_api_in_flight_requests", Help: "A gauge of in-flight requests for the api client.",
		}),
		requestSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storageos_api_request_duration_seconds", Help: "A histogram of request latencies, partitioned by HTTP request method.",
		}, []string{"method"}),
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "storageos_api_requests_total", Help: "A counter for requests from the api client, partitioned by HTTP request method and response code.",
		}, []string{"code", "method"}),
	}
}

func (m *metrics) around(next http.RoundTripper) http.RoundTripper {
	return promhttp.InstrumentRoundTripperInFlight(m.inFlight,
		promhttp.InstrumentRoundTripperCounter(m.requests, promhttp.InstrumentRoundTripperDuration(m.requestSeconds, next)))
}

// helper begins the measurement of one call of a helper. The function that it returns ends the measurement.
func (m *metrics) helper(name string) func(*error) {
	began := time.Now()
	return func(err *error) {
		m.helperSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
		m.helpers.WithLabelValues(name, Class(*err)).Inc()
	}
}

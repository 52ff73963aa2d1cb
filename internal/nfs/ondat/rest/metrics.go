package rest

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the released manager's, by their names. The label error is the class
// of the error: the manager used its text, with a series for each URL and ID.
type metrics struct {
	helperSeconds *prometheus.HistogramVec
	helpers       *prometheus.CounterVec
}

func newMetrics(factory promauto.Factory) *metrics {
	return &metrics{
		helperSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storageos_api_helper_duration_seconds", Help: "Distribution of the length of time api helpers take to complete.",
		}, []string{"function"}),
		helpers: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "storageos_api_helper_total", Help: "Number of api helper calls, partitioned by function name and kind of error.",
		}, []string{"function", "error"}),
	}
}

// helper begins the measurement of a function, by its name in the released manager.
// The function that it returns ends the measurement.
func (m *metrics) helper(name string) func(*error) {
	began := time.Now()
	return func(err *error) {
		m.helperSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
		m.helpers.WithLabelValues(name, class(*err)).Inc()
	}
}

// measured counts the requests that a transport sends.
func measured(factory promauto.Factory, transport http.RoundTripper) http.RoundTripper {
	transport = promhttp.InstrumentRoundTripperDuration(factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "storageos_api_request_duration_seconds", Help: "A histogram of request latencies, partitioned by HTTP request method.",
	}, []string{"method"}), transport)
	transport = promhttp.InstrumentRoundTripperCounter(factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storageos_api_requests_total", Help: "A counter for requests from the api client, partitioned by HTTP request method and response code.",
	}, []string{"code", "method"}), transport)
	return promhttp.InstrumentRoundTripperInFlight(factory.NewGauge(prometheus.GaugeOpts{
		Name: "storageos_api_in_flight_requests", Help: "A gauge of in-flight requests for the api client.",
	}), transport)
}

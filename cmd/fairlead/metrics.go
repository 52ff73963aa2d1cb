package main

import (
	"crypto/tls"
	"crypto/x509"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/cli"
)

// buildInfo says which version of Fairlead runs, as a metric that is always 1.
func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fairlead_build_info", Help: "1, with the version of Fairlead.",
		ConstLabels: prometheus.Labels{"version": cli.Version, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// certificateExpiry says when the serving certificate expires.
func certificateExpiry(source certs.Source) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate expires, in Unix time; 0 while there is none.",
	}, func() float64 {
		served, err := source.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil || served == nil || len(served.Certificate) == 0 {
			return 0
		}
		leaf := served.Leaf
		if leaf == nil {
			if leaf, err = x509.ParseCertificate(served.Certificate[0]); err != nil {
				return 0
			}
		}
		return float64(leaf.NotAfter.Unix())
	})
}

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// served is a certificate source without files.
type served struct{ certificate *tls.Certificate }

func (s served) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.certificate, nil
}
func (s served) Start(context.Context) error { return nil }
func (s served) Healthy() bool               { return true }

func TestCertificateExpiryIsAMetric(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.Do(t, err)
	must.Equal(t, value(t, certificateExpiry(served{&tls.Certificate{Certificate: [][]byte{der}}})), float64(end.Unix()))
	must.Equal(t, value(t, certificateExpiry(served{})), 0)
}

// value of a gauge.
func value(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must.Do(t, registry.Register(c))
	families, err := registry.Gather()
	must.Do(t, err)
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

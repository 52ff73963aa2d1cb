// Package certs provides the serving certificate: from the mounted files of
// cert-manager's Secret or, in clusters without cert-manager, from Fairlead's own
// CA. Both use implementations of cert-manager.
package certs

import (
	"math"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"k8s.io/client-go/rest"
)

// Source provides the serving certificate at each handshake and follows renewals.
type Source = servertls.CertificateSource

// reread is the interval between two reads of the files. The kubelet takes up to
// a minute to update a mounted Secret, so a second adds no relevant delay.
const reread = time.Second

// FromFiles reads a PEM key pair, which is replaced on disk at renewal. The
// server is not ready until the files exist.
func FromFiles(certPath, keyPath string) Source {
	return &servertls.FileCertificateSource{
		CertPath: certPath, KeyPath: keyPath, UpdateInterval: reread, MaxFailures: math.MaxInt,
	}
}

// Authority is the Secret with the self-signed CA. Replicas share the CA, and
// each replica signs its own serving certificate.
type Authority struct {
	Namespace, SecretName string
}

// CAKey is the key of the CA certificate in the Secret.
const CAKey = "ca.crt"

// SelfSigned creates a CA in the Secret if the Secret has none, and serves
// certificates signed by the CA. Both are renewed before they expire.
func SelfSigned(config *rest.Config, a Authority, dnsNames []string) Source {
	return &servertls.DynamicSource{
		DNSNames: dnsNames,
		Authority: &authority.DynamicAuthority{
			RESTConfig:      config,
			SecretNamespace: a.Namespace, SecretName: a.SecretName,
			CommonName: "fairlead-webhook-ca",
		},
	}
}

// Package certs is where the serving certificate comes from: files that
// cert-manager's Secret is mounted as, or a CA of Fairlead's own in clusters
// without cert-manager. Both are cert-manager's own implementations.
package certs

import (
	"math"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"k8s.io/client-go/rest"
)

// Source gives the serving certificate at each handshake and follows its
// renewal while it runs.
type Source = servertls.CertificateSource

// reread is how often files are looked at. The kubelet takes up to a minute to
// bring a new Secret, so this adds nothing that matters and costs two reads.
const reread = time.Second

// FromFiles reads a key pair in PEM that is replaced on disk when renewed.
// Files that are not there yet are waited for: until then the server is not
// ready, which is what readiness is for.
func FromFiles(certPath, keyPath string) Source {
	return &servertls.FileCertificateSource{
		CertPath: certPath, KeyPath: keyPath, UpdateInterval: reread, MaxFailures: math.MaxInt,
	}
}

// Authority is the Secret that holds the self-signed CA. Replicas share it:
// each signs a serving certificate of its own.
type Authority struct {
	Namespace, SecretName string
}

// CAKey is the key of the CA certificate in the Secret.
const CAKey = "ca.crt"

// SelfSigned makes a CA in the Secret, where there is none yet, and serves
// certificates signed by it. Both are renewed in time.
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

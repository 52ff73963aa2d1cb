package cephclients

import (
	"bytes"
	"net/url"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The names in the certificates are the ones that both sides verify, and the CA signs nothing else.
func TestCertificatesOfTheComponent(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nfencing: {cephClients: {mode: crossCheck}, profiles: [{name: rook-ceph}]}\n"))
	must.Do(t, err)
	u, err := url.Parse(c.Fencing.CephClients.URL)
	must.Do(t, err)
	data, err := os.ReadFile("../../manifests/components/fencing-ceph-clients/certificates.yaml")
	must.Do(t, err)
	signed := map[string][]string{}
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var object struct {
			Kind string
			Spec struct {
				IsCA      bool
				DNSNames  []string
				Usages    []string
				IssuerRef struct{ Name string }
			}
		}
		must.Do(t, yaml.Unmarshal(document, &object))
		if object.Kind == "Certificate" && !object.Spec.IsCA && object.Spec.IssuerRef.Name == "fairlead-ceph-clients" && len(object.Spec.DNSNames) == 1 {
			signed[object.Spec.DNSNames[0]] = object.Spec.Usages
		}
	}
	if len(signed) != 2 || !slices.Equal(signed[u.Hostname()], []string{"server auth"}) || !slices.Equal(signed[ClientName], []string{"client auth"}) {
		t.Errorf("signed are %v; the server is %s, the controller %s", signed, u.Hostname(), ClientName)
	}
}

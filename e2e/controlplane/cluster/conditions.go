package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/e2e/controlplane/nodes"
)

// partTimeout is how long any one part may take to get going. It is generous: on
// a busy machine slow is not broken, and what is broken mostly ends by itself.
const partTimeout = 2 * time.Minute

// healthy asks a component's own health endpoint, as the holder of the etcd
// client certificate: etcd answers nobody else, the others answer everybody.
func healthy(ctx context.Context, creds credentials, url string) error {
	ca, err := os.ReadFile(creds.authority.CertificateFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	certificate, err := tls.LoadX509KeyPair(creds.etcdClient.CertificateFile, creds.etcdClient.KeyFile)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func awaitAPIServer(ctx context.Context, c clients) error {
	err := await(ctx, "the API server to be ready", partTimeout, func(ctx context.Context) error {
		return c.typed.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return err
	}
	// The API server makes its namespaces a little later. Leases of nodes can't
	// be without this one.
	return await(ctx, "namespace "+corev1.NamespaceNodeLease, partTimeout, func(ctx context.Context) error {
		_, err := c.typed.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{})
		return err
	})
}

// awaitServiceAccount tells that pods can be created: without the default
// service account they are refused.
func awaitServiceAccount(ctx context.Context, c clients) error {
	return await(ctx, "the default service account", partTimeout, func(ctx context.Context) error {
		_, err := c.typed.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func awaitNodes(ctx context.Context, c clients) error {
	return await(ctx, "all simulated nodes to be Ready", partTimeout, func(ctx context.Context) error {
		list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if node := &list.Items[i]; !nodes.Ready(node) {
				return fmt.Errorf("%w: %s is not Ready", errNotYet, node.Name)
			}
		}
		return nil
	})
}

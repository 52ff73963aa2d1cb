package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cephclients"
)

// TestCephClientsComponent installs the server that asks Ceph. Its pods may run, and by cert-manager's
// certificates the controller and the server admit each other. What it asks Ceph is in e2e/ceph.
func TestCephClientsComponent(t *testing.T) {
	c := newControlPlane(t, options{})
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	c.eventually("the restricted pod security standard lets its pods run", time.Minute, func() error {
		var d appsv1.Deployment
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: "fairlead-ceph-clients"}, &d))
		if d.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%d of 2 replicas available: %v", d.Status.AvailableReplicas, d.Status.Conditions)
		}
		return nil
	})
	server, controller := c.mounted("fairlead-ceph-clients-server"), c.mounted("fairlead-ceph-clients-controller")
	c.must(handshake(server, controller))
	if handshake(server, server) == nil || handshake(controller, controller) == nil {
		t.Error("a certificate is taken for what it is not")
	}
}

// mounted is a directory with the files of a Secret, as soon as it is there.
func (c *cluster) mounted(name string) string {
	c.t.Helper()
	var secret corev1.Secret
	c.eventually("Secret "+name, time.Minute, func() error {
		return c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: name}, &secret)
	})
	directory := c.t.TempDir()
	for file, content := range secret.Data {
		c.must(os.WriteFile(filepath.Join(directory, file), content, 0o600))
	}
	return directory
}

// handshake is between the server and a client that calls it by the name of its Service.
func handshake(server, by string) error {
	pem, err := os.ReadFile(filepath.Join(by, "ca.crt"))
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(by, "tls.crt"), filepath.Join(by, "tls.key"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	one, other := net.Pipe()
	defer one.Close()
	accepted := make(chan error, 1)
	go func() {
		defer other.Close()
		accepted <- tls.Server(other, cephclients.ServerTLS(server)).Handshake()
	}()
	called := tls.Client(one, &tls.Config{ServerName: "fairlead-ceph-clients.fairlead-system.svc", RootCAs: pool, Certificates: []tls.Certificate{certificate}}).Handshake()
	one.Close()
	return errors.Join(called, <-accepted)
}

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/testkit/apiserver"
)

// servedName is in httptest's certificate, which all use here.
const servedName = "example.com"

const fencingConfiguration = `apiVersion: config.fairlead.io/v1alpha1
kind: Configuration
fencing: {profiles: [{name: rook-ceph}], tainting: {mode: "on"}}
`

// fencedCluster is a cluster with Fairlead's webhook and controller beside it.
type fencedCluster struct {
	*apiserver.Server
	webhook, controller *sandbox.Replica
	address             string // of the webhook
}

func (c *fencedCluster) costs() (webhook, controller processCost, err error) {
	webhook, err1 := costOf(c.webhook.Pid())
	controller, err2 := costOf(c.controller.Pid())
	if err := errors.Join(err1, err2); err != nil {
		return webhook, controller, fmt.Errorf("%w; see %s and %s", err, c.webhook.Log, c.controller.Log)
	}
	return webhook, controller, nil
}

// start serves the cluster and starts Fairlead beside it. stop ends everything, also after an error.
func (c *fencedCluster) start(ctx context.Context, binary string, added []string) (stop func() error, err error) {
	dir, err := os.MkdirTemp("", "fairlead-scale-")
	if err != nil {
		return func() error { return nil }, err
	}
	server := httptest.NewUnstartedServer(c.Server)
	server.EnableHTTP2 = true
	server.StartTLS()
	stop = func() error {
		var problems []error
		for _, p := range []*sandbox.Replica{c.controller, c.webhook} {
			if p != nil {
				problems = append(problems, p.Stop())
			}
		}
		server.CloseClientConnections()
		server.Close()
		return errors.Join(append(problems, os.RemoveAll(dir))...)
	}
	if err := writeFiles(dir, server); err != nil {
		return stop, err
	}
	ports, err := sandbox.FreeAddresses(4)
	if err != nil {
		return stop, err
	}
	c.address = ports[0]
	common := []string{"--config", filepath.Join(dir, "configuration.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig")}
	for _, p := range []struct {
		to        **sandbox.Replica
		name, ops string
		args, env []string
	}{
		// As in manifests/base/webhook.yaml and controller.yaml.
		{&c.webhook, "webhook", ports[1], []string{"webhook", "--listen", ports[0], "--api-listen", "0", "--ops-listen", ports[1], "--serving-name", servedName, "--drain-delay", "0s",
			"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key")}, []string{"GOMEMLIMIT=400MiB"}},
		{&c.controller, "controller", ports[3], append([]string{"controller", "--metrics-listen", ports[2], "--health-listen", ports[3]}, added...), []string{"GOMEMLIMIT=900MiB", "GOGC=50"}},
	} {
		log := filepath.Join(os.TempDir(), "fairlead-scale-"+p.name+".log")
		if *p.to, err = sandbox.StartProcess(p.name, log, binary, append(p.args, common...), p.env); err != nil {
			return stop, err
		}
		(*p.to).OpsURL = "http://" + p.ops
		if err := (*p.to).WaitReady(ctx); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

func writeFiles(dir string, server *httptest.Server) error {
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return err
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: chain}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "scale"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"kubeconfig": kubeconfig, "configuration.yaml": []byte(fencingConfiguration),
		"tls.crt": chain, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

var errNotAllowed = errors.New("the attachment was not allowed")

// judge has the webhook judge attachments of the volume with many holders, and returns how long the answers took.
func (c *fencedCluster) judge(ctx context.Context) (median, worst time.Duration, err error) {
	object := fmt.Sprintf(`{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"name":"new"},"spec":{"attacher":%q,"nodeName":%q,"source":{"persistentVolumeName":%q}}}`,
		apiserver.CephDriver, apiserver.NodeName(0), apiserver.SharedVolume)
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "uid", Kind: metav1.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"},
			Resource: metav1.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
			Name:     "new", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
		},
	})
	if err != nil {
		return 0, 0, err
	}
	// The identity of the webhook is not measured.
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // loopback
	defer caller.CloseIdleConnections()
	var took []time.Duration
	for range 21 {
		began := time.Now()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.address+"/validate/attachments", bytes.NewReader(body))
		if err != nil {
			return 0, 0, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := caller.Do(request)
		if err != nil {
			return 0, 0, err
		}
		var answer admissionv1.AdmissionReview
		err = errors.Join(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close())
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", response.Status, err)
		}
		if answer.Response == nil || !answer.Response.Allowed {
			return 0, 0, fmt.Errorf("%w: %+v", errNotAllowed, answer.Response)
		}
		took = append(took, time.Since(began))
	}
	took = took[1:] // the first opens the connection
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], nil
}

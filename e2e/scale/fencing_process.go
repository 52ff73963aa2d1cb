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
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead-io/fairlead/bench/apiserver"
)

// servedName is in httptest's certificate, which all use here.
const servedName = "example.com"

const fencingConfiguration = `apiVersion: config.fairlead.io/v1alpha1
kind: Configuration
fencing: {profiles: [{name: rook-ceph}], tainting: {mode: "on"}}
`

// process of Fairlead.
type process struct {
	*exec.Cmd
	log string
}

func (p *process) cost() (processCost, error) {
	c, err := costOf(p.Process.Pid)
	if err != nil {
		err = fmt.Errorf("%w; see %s", err, p.log)
	}
	return c, err
}

// start serves the cluster and starts Fairlead beside it. stop ends everything, also after an error.
func (c *fencedCluster) start(ctx context.Context, binary string, added []string) (stop func() error, err error) {
	var ends []func() error
	stop = func() error {
		var problems []error
		for _, end := range slices.Backward(ends) {
			problems = append(problems, end())
		}
		return errors.Join(problems...)
	}
	dir, err := os.MkdirTemp("", "fairlead-scale-")
	if err != nil {
		return stop, err
	}
	ends = append(ends, func() error { return os.RemoveAll(dir) })
	server := httptest.NewUnstartedServer(c.Changing)
	server.EnableHTTP2 = true
	server.StartTLS()
	ends = append(ends, func() error {
		server.CloseClientConnections()
		server.Close()
		return nil
	})
	if err := writeFiles(dir, server); err != nil {
		return stop, err
	}
	ports, err := freePorts(4)
	if err != nil {
		return stop, err
	}
	c.address = ports[0]
	common := []string{"--config", filepath.Join(dir, "configuration.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig")}
	for _, p := range []struct {
		to          **process
		args, env   []string
		ready, name string
	}{
		// As in manifests/base/webhook.yaml and controller.yaml.
		{&c.webhook, []string{"webhook", "--listen", ports[0], "--api-listen", "0", "--ops-listen", ports[1], "--serving-name", servedName, "--drain-delay", "0s",
			"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key")}, []string{"GOMEMLIMIT=400MiB"}, ports[1], "webhook"},
		{&c.controller, append([]string{"controller", "--metrics-listen", ports[2], "--health-listen", ports[3]}, added...), []string{"GOMEMLIMIT=900MiB", "GOGC=50"}, ports[3], "controller"},
	} {
		started, err := startProcess(binary, filepath.Join(os.TempDir(), "fairlead-scale-"+p.name+".log"), append(p.args, common...), p.env)
		if err != nil {
			return stop, err
		}
		ends = append(ends, started.end)
		*p.to = started
		if err := untilReady(ctx, "http://"+p.ready+"/readyz"); err != nil {
			return stop, fmt.Errorf("%s: %w; see %s", p.name, err, started.log)
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
	var chain []byte
	for _, c := range certificate.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c})...)
	}
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

func freePorts(many int) ([]string, error) {
	var ports []string
	for range many {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().String())
	}
	return ports, nil
}

func startProcess(binary, logFile string, args, env []string) (*process, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{exec.Command(binary, args...), logFile}
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), env...), log, log
	return p, p.Start()
}

func (p *process) end() error {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = p.Wait()
	return nil
}

func untilReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, mostWaiting)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

var errNotAllowed = errors.New("the attachment was not allowed")

// judge has the webhook judge attachments of the volume with many holders, and returns how long the answers took.
func (c *fencedCluster) judge(ctx context.Context) (median, worst time.Duration, err error) {
	object := fmt.Sprintf(`{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"name":"new"},"spec":{"attacher":%q,"nodeName":%q,"source":{"persistentVolumeName":%q}}}`,
		apiserver.CephDriver, apiserver.NodeName(0), apiserver.SharedVolume)
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "uid", Kind: metav1.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"},
			Resource: metav1.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
			Name:     "new", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
		},
	}
	body, err := json.Marshal(review)
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

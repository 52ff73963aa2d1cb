package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/forwarder"
)

// Replica is one process of Fairlead: what a Deployment says, with its volumes
// as folders, its service account's token, and free loopback ports.
type Replica struct {
	Name string
	// Log is the file of its standard error.
	Log string
	// OpsURL is where health and, for the webhook, metrics are.
	OpsURL string
	// APIAddress is where a webhook serves the REST API, over TLS.
	APIAddress string
	// MetricsURL is where metrics are.
	MetricsURL string

	cmd    *exec.Cmd
	exited chan struct{}
	cancel context.CancelFunc
	remove func()
}

// newReplica is any other process, kept like one of Fairlead.
func newReplica(name, log string) *Replica {
	return &Replica{Name: name, Log: log, exited: make(chan struct{}), cancel: func() {}, remove: func() {}}
}

// Replicas that were started, those that have ended included.
func (s *Sandbox) Replicas() []*Replica { return s.replicas }

// StartReplica starts one more process of a Deployment.
func (s *Sandbox) StartReplica(ctx context.Context, deployment, name string) (*Replica, error) {
	d, container, err := s.deployment(ctx, deployment)
	if err != nil {
		return nil, err
	}
	dir := s.replicaFolder(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	kubeconfig, err := s.ServiceAccountKubeconfig(ctx, d.Namespace, d.Spec.Template.Spec.ServiceAccountName, dir)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Replica{Name: name, Log: filepath.Join(dir, "log"), exited: make(chan struct{}), cancel: cancel, remove: func() {}}
	args, err := s.mount(running, dir, d.Spec.Template.Spec.Volumes, container)
	if err != nil {
		cancel()
		return nil, err
	}
	args = append(args, "--kubeconfig="+kubeconfig)
	addresses, err := FreeAddresses(3)
	if err != nil {
		cancel()
		return nil, err
	}
	admission, ops := addresses[0], addresses[1]
	r.OpsURL, r.MetricsURL = "http://"+ops, "http://"+ops+"/metrics"
	if deployment == WebhookDeployment {
		r.APIAddress = addresses[2]
		args = append(args, "--listen="+admission, "--ops-listen="+ops, "--api-listen="+r.APIAddress, "--drain-delay=1s") // see endpointsDelay
		r.remove = s.forward.Add(admission, r.OpsURL+"/readyz")
		if s.api != nil {
			removeAdmission, removeAPI := r.remove, s.api.Add(r.APIAddress, r.OpsURL+"/readyz")
			r.remove = func() { removeAdmission(); removeAPI() }
		}
	} else {
		r.MetricsURL = "http://" + admission + "/metrics"
		args = append(args, "--health-listen="+ops, "--metrics-listen="+admission)
		args = append(args, s.ControllerArgs...)
	}
	if err := r.start(s.Fairlead, args, container.Env); err != nil {
		cancel()
		return nil, err
	}
	s.replicas = append(s.replicas, r)
	return r, nil
}

func (r *Replica) start(binary string, args []string, env []corev1.EnvVar) error {
	var variables []string
	for _, e := range env {
		variables = append(variables, e.Name+"="+e.Value)
	}
	return r.startWith(binary, args, variables)
}

func (r *Replica) startWith(binary string, args, env []string) error {
	log, err := os.OpenFile(r.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", r.Name, err)
	}
	defer log.Close()
	r.cmd = exec.Command(binary, args...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.Env = append(os.Environ(), env...)
	if err := startTied(r.cmd); err != nil {
		return fmt.Errorf("starting %s: %w", r.Name, err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.exited)
	}()
	return nil
}

// Pid of the process.
func (r *Replica) Pid() int { return r.cmd.Process.Pid }

// Running tells whether the process has not ended.
func (r *Replica) Running() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// WaitReady waits until the replica says that it is ready.
func (r *Replica) WaitReady(ctx context.Context) error { return r.WaitHealthy(ctx, "/readyz") }

// WaitHealthy waits until the process answers at a path of its OpsURL that it is well.
func (r *Replica) WaitHealthy(ctx context.Context, path string) error {
	client := &http.Client{Timeout: time.Second}
	return r.Until(ctx, time.Minute, func() error {
		ready, err := forwarder.IsReady(ctx, client, r.OpsURL+path)
		if err == nil && !ready {
			err = errors.New("not ready")
		}
		return err
	})
}

// Until waits until check finds nothing wrong, as long as the process runs.
func (r *Replica) Until(ctx context.Context, within time.Duration, check func() error) error {
	err := eventually.Until(ctx, r.Name, within, func() error {
		if !r.Running() {
			return eventually.Never(errors.New("it has ended"))
		}
		return check()
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, r.tail())
	}
	return nil
}

func (r *Replica) tail() string {
	data, err := os.ReadFile(r.Log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

const (
	// stopReplicaTimeout is the termination grace period of the Deployment.
	stopReplicaTimeout = 60 * time.Second
	// endpointsDelay is how long a pod that is asked to end still gets connections, until its Service's endpoints are
	// changed everywhere. The drain delay has to be longer, as in a cluster.
	endpointsDelay = 300 * time.Millisecond
)

// Stop asks the process to end, as a kubelet does, and waits for it.
func (r *Replica) Stop() error {
	defer r.forget()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", r.Name, err)
	}
	leave := time.AfterFunc(endpointsDelay, r.remove)
	defer leave.Stop()
	select {
	case <-r.exited:
		return nil
	case <-time.After(stopReplicaTimeout):
		return errors.Join(fmt.Errorf("%s did not end within %s", r.Name, stopReplicaTimeout), r.Kill())
	}
}

// Kill ends the process at once, as a crash does.
func (r *Replica) Kill() error {
	defer r.forget()
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", r.Name, err)
	}
	<-r.exited
	return nil
}

func (r *Replica) forget() {
	r.remove()
	r.cancel()
}

// tokenSeconds is longer than anybody leaves a sandbox running: nobody renews
// the token, as a kubelet would.
const tokenSeconds int64 = 30 * 24 * 3600

// ServiceAccountKubeconfig writes a kubeconfig of a service account into a folder, and
// returns its path.
func (s *Sandbox) ServiceAccountKubeconfig(ctx context.Context, namespace, account, dir string) (string, error) {
	clients, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return "", fmt.Errorf("building a client: %w", err)
	}
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(tokenSeconds)},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of %s: %w", account, err)
	}
	admin, err := clientcmd.LoadFromFile(s.State.Kubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for name := range admin.AuthInfos {
		admin.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*admin, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", account, err)
	}
	return path, nil
}

// Ports below those that the kernel gives to outgoing connections
// (net.ipv4.ip_local_port_range): one that is found free stays free until it is listened on.
const firstPort, lastPort = 20000, 32000

// given are the ports that this process has given away: they may not be listened on yet.
var given sync.Map

// FreeAddresses finds loopback addresses that no process listens on, each only once. Several processes at a time
// seldom find the same, since they look at random.
func FreeAddresses(n int) ([]string, error) {
	var addresses []string
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		defer l.Close()
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if addresses = append(addresses, l.Addr().String()); len(addresses) == n {
			return addresses, nil
		}
	}
	return nil, errNoPort
}

var errNoPort = fmt.Errorf("there are no free ports from %d to %d", firstPort, lastPort)

func (s *Sandbox) replicaFolder(name string) string { return filepath.Join(s.Dir, "replicas", name) }

// volumeFolder is where a volume of a replica is.
func (s *Sandbox) volumeFolder(replica, volume string) string {
	return volumeFolder(s.replicaFolder(replica), volume)
}

func volumeFolder(dir, volume string) string { return filepath.Join(dir, "volumes", volume) }

// mount brings the container's volumes to folders and returns its arguments
// with the folders in place of the paths in the container.
func (s *Sandbox) mount(ctx context.Context, dir string, volumes []corev1.Volume, container *corev1.Container) ([]string, error) {
	args := append([]string(nil), container.Args...)
	for _, m := range container.VolumeMounts {
		for _, v := range volumes {
			if v.Name != m.Name {
				continue
			}
			folder := volumeFolder(dir, v.Name)
			if err := s.follow(ctx, v, folder); err != nil {
				return nil, err
			}
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], m.MountPath+"/", folder+"/")
			}
		}
	}
	return args, nil
}

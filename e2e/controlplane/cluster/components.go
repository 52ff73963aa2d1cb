package cluster

import (
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/nodes"
	"github.com/fairlead-io/fairlead/e2e/controlplane/process"
)

// setup is everything the command lines are made from.
type setup struct {
	options     Options
	files       layout
	ports       Ports
	credentials credentials
}

func (s setup) spec(name string, args ...string) process.Spec {
	return process.Spec{
		Name: name, Path: s.options.Cache.Binary(name), Args: args,
		// Whatever a component writes without being told where, it writes here.
		Dir: s.options.Dir, Log: s.files.log(name),
	}
}

func (s setup) etcd() process.Spec {
	client, peer := "https://"+loopback(s.ports.Etcd), "http://"+loopback(s.ports.EtcdPeer)
	return s.spec(binaries.Etcd,
		"--name=fairlead",
		"--data-dir="+s.files.etcdData(),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=fairlead="+peer,
		// Loopback is open to every user of the machine; the data is not.
		"--client-cert-auth", "--trusted-ca-file="+s.credentials.authority.CertificateFile,
		"--cert-file="+s.credentials.server.CertificateFile, "--key-file="+s.credentials.server.KeyFile,
		// The data needn't survive a power cut, and a sync per write is most of
		// what a write costs.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

func (s setup) apiServer() process.Spec {
	optional := s.auditFlags()
	if len(s.options.Forwards) > 0 {
		// kwok is the kubelet of every node; see nodes.KubeletHere.
		optional = append(optional, "--kubelet-preferred-address-types=InternalDNS")
	}
	return s.spec(binaries.APIServer, append(append(optional, s.addressFlags()...),
		fmt.Sprintf("--secure-port=%d", s.ports.APIServer),
		"--etcd-servers=https://"+loopback(s.ports.Etcd),
		"--etcd-cafile="+s.credentials.authority.CertificateFile,
		"--etcd-certfile="+s.credentials.etcdClient.CertificateFile, "--etcd-keyfile="+s.credentials.etcdClient.KeyFile,
		"--tls-cert-file="+s.credentials.server.CertificateFile, "--tls-private-key-file="+s.credentials.server.KeyFile,
		"--client-ca-file="+s.credentials.authority.CertificateFile,
		"--service-cluster-ip-range="+strings.Join(serviceCIDRs, ","),
		"--service-account-issuer=https://kubernetes.default.svc."+s.options.ClusterDomain,
		"--service-account-key-file="+s.credentials.serviceAccounts.CertificateFile,
		"--service-account-signing-key-file="+s.credentials.serviceAccounts.KeyFile,
		"--authorization-mode=Node,RBAC",
		// On top of the default ones, PodSecurity among them.
		"--enable-admission-plugins=NodeRestriction",
		// Nothing is aggregated, but the controller manager and the scheduler
		// fill their logs with complaints as long as these aren't published.
		"--requestheader-client-ca-file="+s.credentials.authority.CertificateFile,
		"--requestheader-allowed-names="+frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+s.credentials.frontProxy.CertificateFile,
		"--proxy-client-key-file="+s.credentials.frontProxy.KeyFile,
		"--allow-privileged=true",
		"--profiling=false",
	)...)
}

// addressFlags say where the API server is, and how it reaches kubelets and pods.
func (s setup) addressFlags() []string {
	if s.options.Address == "" {
		return []string{
			"--bind-address=127.0.0.1",
			// Simulated pods call no server, but without an address the API server needs a network.
			"--advertise-address=127.0.0.1",
			// A loopback address can't be an endpoint.
			"--endpoint-reconciler-type=none",
		}
	}
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + s.options.Address,
		// No kube-proxy runs beside the API server: it calls webhooks at the addresses of their pods.
		"--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + s.credentials.kubeletClient.CertificateFile, "--kubelet-client-key=" + s.credentials.kubeletClient.KeyFile,
	}
}

// What holds controllers back on a real cluster, for the API server's sake, would
// only make thousands of pods take longer here.
const (
	clientQPS   = "--kube-api-qps=1000"
	clientBurst = "--kube-api-burst=2000"
)

func (s setup) controllerManager() process.Spec {
	kubeconfig := s.files.componentKubeconfig(binaries.ControllerManager)
	args := []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.ControllerManager),
		"--tls-cert-file=" + s.credentials.server.CertificateFile, "--tls-private-key-file=" + s.credentials.server.KeyFile,
		// There is only one, and waiting for a lease takes seconds.
		"--leader-elect=false",
		clientQPS, clientBurst,
		// Each controller with its own rights, as on a real cluster.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + s.credentials.serviceAccounts.KeyFile,
		"--root-ca-file=" + s.credentials.authority.CertificateFile,
		"--cluster-signing-cert-file=" + s.credentials.authority.CertificateFile, "--cluster-signing-key-file=" + s.credentials.authority.KeyFile,
		// The default is a system folder.
		"--flex-volume-plugin-dir=" + s.files.path("flexvolume"),
	}
	if s.options.FastNodeLoss {
		args = append(args, "--node-monitor-period=1s", "--node-monitor-grace-period=12s")
	}
	return s.spec(binaries.ControllerManager, args...)
}

func (s setup) scheduler() process.Spec {
	kubeconfig := s.files.componentKubeconfig(binaries.Scheduler)
	return s.spec(binaries.Scheduler,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.Scheduler),
		"--tls-cert-file="+s.credentials.server.CertificateFile, "--tls-private-key-file="+s.credentials.server.KeyFile,
		"--leader-elect=false",
		clientQPS, clientBurst,
	)
}

func (s setup) kwok() process.Spec {
	// A lease is renewed every quarter of its duration. Renewals must come
	// several times in the period after which a node counts as lost: 12 s when
	// that is to be fast, 50 s otherwise.
	leaseSeconds := 40
	if s.options.FastNodeLoss {
		leaseSeconds = 8
	}
	args := []string{
		"--kubeconfig=" + s.files.componentKubeconfig(binaries.Kwok),
		"--config=" + s.files.stages(),
		"--manage-nodes-with-label-selector=" + nodes.ManageSelector,
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
	}
	if len(s.options.Forwards) > 0 {
		args = append(args, "--server-address="+loopback(s.ports.Kubelet), fmt.Sprintf("--node-port=%d", s.ports.Kubelet),
			"--tls-cert-file="+s.credentials.server.CertificateFile, "--tls-private-key-file="+s.credentials.server.KeyFile)
	}
	spec := s.spec(binaries.Kwok, args...)
	// Otherwise kwok would also read the configuration in the user's home.
	spec.Env = []string{"KWOK_WORKDIR=" + s.files.path("kwok")}
	return spec
}

func (s setup) certManager() process.Spec {
	return s.spec(binaries.CertManager,
		"--cluster-kubeconfig="+s.files.componentKubeconfig(binaries.CertManager),
		"--cluster-resource-namespace="+certManagerNamespace,
	)
}

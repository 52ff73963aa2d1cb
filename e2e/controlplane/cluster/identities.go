package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/pki"
)

// masters is the group that may do everything, on every cluster.
const masters = "system:masters"

// simulatorName is the user as which the Multus simulator is known.
const simulatorName = "multus"

// frontProxyName is as whom the API server speaks for its users to servers
// behind it.
const frontProxyName = "front-proxy-client"

// credentials are the files by which the parts of the control plane know each
// other.
type credentials struct {
	authority, server, etcdClient, frontProxy, kubeletClient, serviceAccounts pki.Pair
}

// issue makes all certificates and kubeconfigs.
func issue(files layout, options Options, ports Ports) (credentials, error) {
	authority, err := pki.New(files.pki())
	if err != nil {
		return credentials{}, err
	}
	result := credentials{authority: authority.Pair}
	if result.server, err = authority.Server("server", serverNames(options)); err != nil {
		return credentials{}, err
	}
	if result.etcdClient, err = authority.Client("etcd-client"); err != nil {
		return credentials{}, err
	}
	if result.frontProxy, err = authority.Client(frontProxyName); err != nil {
		return credentials{}, err
	}
	if result.kubeletClient, err = authority.Client("kube-apiserver-kubelet-client", masters); err != nil {
		return credentials{}, err
	}
	if result.serviceAccounts, err = authority.ServiceAccountKey(); err != nil {
		return credentials{}, err
	}

	identities := []identity{
		{"admin", []string{masters}, files.kubeconfig(), false},
		{"system:kube-controller-manager", nil, files.componentKubeconfig(binaries.ControllerManager), false},
		{"system:kube-scheduler", nil, files.componentKubeconfig(binaries.Scheduler), false},
		// What simulates real parts does their work under many names there;
		// here one that may do everything is enough.
		{binaries.Kwok, []string{masters}, files.componentKubeconfig(binaries.Kwok), false},
		{binaries.CertManager, []string{masters}, files.componentKubeconfig(binaries.CertManager), false},
		{simulatorName, []string{masters}, files.componentKubeconfig(simulatorName), false},
	}
	for _, name := range options.Kubelets {
		identities = append(identities, identity{"system:node:" + name, []string{"system:nodes"}, files.componentKubeconfig(name), true})
	}
	if len(options.Kubelets) > 0 {
		identities = append(identities, identity{"system:kube-proxy", nil, files.componentKubeconfig("kube-proxy"), true})
	}
	for _, identity := range identities {
		pair, err := authority.Client(identity.user, identity.groups...)
		if err != nil {
			return credentials{}, err
		}
		server := serverURL(ports)
		if identity.onNodes {
			server = "https://" + net.JoinHostPort(options.Address, strconv.Itoa(ports.APIServer))
		}
		if err := writeKubeconfig(identity.file, identity.user, server, authority.CertificateFile, pair); err != nil {
			return credentials{}, fmt.Errorf("writing the kubeconfig of %s: %w", identity.user, err)
		}
	}
	return result, nil
}

// identity of a user, in a kubeconfig.
type identity struct {
	user   string
	groups []string
	file   string
	// onNodes is for users that call the API server from a node.
	onNodes bool
}

func serverURL(ports Ports) string { return "https://" + loopback(ports.APIServer) }

func serverNames(options Options) []string {
	names := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + options.ClusterDomain,
	}
	if options.Address != "" {
		names = append(names, options.Address)
	}
	for _, cidr := range serviceCIDRs { // the first address of each is the Service default/kubernetes
		names = append(names, netip.MustParsePrefix(cidr).Addr().Next().String())
	}
	return names
}

// serviceCIDRs are the ranges of Services.
var serviceCIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112"}

// writeKubeconfig embeds everything, so that the file can be copied anywhere.
func writeKubeconfig(path, user, server, caFile string, pair pki.Pair) error {
	const name = "fairlead"
	config := clientcmdapi.NewConfig()
	cluster, auth := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	for file, content := range map[string]*[]byte{
		caFile:               &cluster.CertificateAuthorityData,
		pair.CertificateFile: &auth.ClientCertificateData,
		pair.KeyFile:         &auth.ClientKeyData,
	} {
		var err error
		if *content, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	config.Clusters[name] = cluster
	config.AuthInfos[user] = auth
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

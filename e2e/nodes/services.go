//go:build linux

package nodes

import (
	"fmt"
	"path/filepath"
)

// Paths on a node.
const (
	sharedLedger     = "/var/lib/fairlead-addresses"
	sharedFolder     = "/srv/fairlead-shared"
	containerdSocket = "/run/containerd/containerd.sock"
	pauseImage       = "fairlead.test/pause:1"
	dnsAddress       = "10.96.0.10"
)

// services writes the configurations of services and returns their commands. A service ends, and is started again,
// until the services that it needs are running.
func (n *Node) services() ([]service, error) {
	programs := n.cluster.programs
	configuration, cgroup := filepath.Join(n.Dir, "configuration"), n.cgroup()
	files := map[string]string{
		"containerd.toml":    fmt.Sprintf(containerdConfiguration, pauseImage, programs.CNI, filepath.Join(configuration, "cni")),
		"kubelet.yaml":       fmt.Sprintf(kubeletConfiguration, n.cluster.authority(), containerdSocket, dnsAddress, filepath.Join(configuration, "resolv.conf"), "/"+cgroup),
		"cni/00-multus.conf": fmt.Sprintf(multusConfiguration, n.cluster.multusKubeconfig(), fmt.Sprintf(podRange, n.number)),
		"resolv.conf":        "",
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(configuration, name), text); err != nil {
			return nil, err
		}
	}
	if err := makeCgroup(cgroup); err != nil {
		return nil, err
	}
	return []service{
		{"containerd", []string{"containerd", "--config", filepath.Join(configuration, "containerd.toml")}},
		{"kubelet", []string{
			programs.Kubelet, "--config=" + filepath.Join(configuration, "kubelet.yaml"), "--kubeconfig=" + n.cluster.kubeconfig(n.Name),
			"--hostname-override=" + n.Name, "--node-ip=" + n.Address, "--cert-dir=/var/lib/kubelet/pki", "--v=2",
		}},
		{"kube-proxy", []string{
			// Limits on connections are the machine's: the node cannot set them.
			programs.KubeProxy, "--kubeconfig=" + n.cluster.kubeconfig("kube-proxy"), "--hostname-override=" + n.Name, "--proxy-mode=nftables", "--cluster-cidr=" + allPods,
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}},
		// The kernel has no NFS client: the mount helper in containers asks this agent, whose mounts log in $TMPDIR.
		{"nfsmount", []string{"env", "TMPDIR=" + filepath.Dir(n.Log("nfsmount")), programs.NFSMount, "agent"}},
	}, nil
}

const containerdConfiguration = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%s"
    conf_dir = "%s"
`

const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: "%s"}, webhook: {enabled: true}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: "unix://%s"
clusterDNS: ["%s"]
clusterDomain: cluster.local
resolvConf: "%s"
cgroupDriver: cgroupfs
cgroupRoot: "%s"
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
volumePluginDir: /var/lib/kubelet/volumeplugins
# A lost node is noticed within seconds.
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
# All nodes are on one disk.
evictionHard: {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
# Pods of one test come at once.
registryPullQPS: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
serializeImagePulls: false
syncFrequency: 10s
`

// multusConfiguration routes pods and does not bridge them: packets between two pods of a node pass the rules of
// kube-proxy, too.
const multusConfiguration = `{
  "cniVersion": "1.0.0", "name": "multus", "type": "multus", "kubeconfig": "%s", "logLevel": "error",
  "delegates": [{
    "cniVersion": "1.0.0", "name": "pods", "plugins": [
      {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
      {"type": "portmap", "capabilities": {"portMappings": true}}
    ]
  }]
}
`

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// offer puts kubectl, fairlead and the kubeconfig where the welcome text says. The kubeconfig comes last: up waits for it.
// An address is where the user reaches the API server, if that is not where it listens.
func offer(s *sandbox.Sandbox, address string) error {
	fairlead, err := fairleadBinary()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(devDir, "bin"), 0o755); err != nil {
		return fmt.Errorf("making the folder of programs: %w", err)
	}
	for name, program := range map[string]string{"kubectl": s.State.Kubectl, "fairlead": fairlead} {
		if err := os.Symlink(program, filepath.Join(devDir, "bin", name)); err != nil {
			return err
		}
	}
	config, err := clientcmd.LoadFromFile(s.State.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		if address != "" {
			cluster.Server = "https://" + address
		}
	}
	next := kubeconfig() + ".next"
	if err := clientcmd.WriteToFile(*config, next); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return os.Rename(next, kubeconfig())
}

const welcomeText = `
The cluster runs in the background, with Fairlead in it. To use it:
  export KUBECONFIG=%[1]s/kubeconfig PATH=%[1]s/bin:$PATH
  fairlead status                                          # and fairlead volumes, fairlead settings
  fairlead plan --set storage-network=kube-system/storage-net --set storage-network-for-rwx-volume-enabled=true
`

// standInText follows where the stand-in plays Longhorn, else realText or nodesText.
const standInText = `  kubectl scale statefulset/web --replicas=0    # detaches the RWX volume pvc-117d3553
docs/start.md goes on from here. Volumes follow their workloads, and claims are provisioned, as with Longhorn.
A process runs for each of Fairlead's pods, beside the cluster: its log is %[1]s/replicas/POD/log. To end it: make down
`

const realText = `  kubectl scale deployment/web --replicas=0     # detaches the RWX volume pvc-shared
longhorn-manager, its CSI driver and Kubernetes' attacher are real. Volumes have no data, and claims are not
provisioned. Fairlead and Longhorn run beside the cluster, not in its simulated pods: their logs are
%[1]s/replicas/*/log and %[1]s/longhorn/*.log. To end it: make down
`

const nodesText = `  kubectl exec deployment/reader -- tail /data/log         # on node-2, what the writer on node-1 writes
  on node-1 ip -s link show stor0                          # a command on a node: the bytes of its storage link
  on machine ip link set mgmt-1 down                       # cuts the management link of node-1; up mends it
Kubelets, containerd, Multus, Longhorn and Fairlead are real. See e2e/nodes/README.md, and
docs/reference/tests.md for what is not real.
The logs of the nodes are %[1]s/node-*/log/*. To end it: make down
`

const fencingText = `  fairlead fences                                          # docs/fencing-setup.md#try-it goes on from here
`

func welcome(longhorn string) error {
	dir, err := filepath.Abs(devDir)
	if err != nil {
		return fmt.Errorf("finding %s: %w", devDir, err)
	}
	text := standInText
	if _, is := realVersion(longhorn); is {
		text = realText
	}
	if longhorn == realNodes {
		text = nodesText
	}
	if os.Getenv(fencingVariable) != "" {
		text = fencingText + text
	}
	fmt.Printf(welcomeText+text, dir)
	return nil
}

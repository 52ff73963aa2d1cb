package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// demo shows the main job: two settings, and shared volumes come up on the
// storage network.
func demo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "fairlead-demo-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		} else {
			fmt.Fprintf(os.Stderr, "what was written is left in %s\n", dir)
		}
	}()
	out, end, err := stage(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	t := newTour(out)
	t.say("Starting a real control plane on this machine (built once, which takes minutes; then seconds)")
	s, err := start(ctx, dir, false)
	if err != nil {
		return err
	}
	defer func() {
		t.say("Ending everything that was started")
		err = errors.Join(err, s.Stop())
	}()
	running, stop := context.WithCancel(ctx)
	defer stop()
	go s.Longhorn().RunComponents(running)
	go s.Longhorn().RunEndpoints(running)
	go s.Longhorn().RunShareManagers(running)
	t.kubectl = s.Kubectl
	t.kubeconfig = s.State.Kubeconfig
	t.say("Installing Fairlead from manifests/overlays/cert-manager: 2 webhook replicas, 2 controllers (one leads)")
	if err := install(ctx, s); err != nil {
		return err
	}
	if err := tour(ctx, t, s); err != nil {
		return err
	}
	t.say("Done. To play with this cluster yourself: make up, then export KUBECONFIG=.dev/kubeconfig")
	return nil
}

// start a cluster with the stand-in for Longhorn. With fencing it also has csi-addons and a stand-in for Ceph, and
// loses nodes quickly.
func start(ctx context.Context, dir string, fencing bool) (*sandbox.Sandbox, error) {
	binary, err := fairleadBinary()
	if err != nil {
		return nil, err
	}
	o := sandbox.Options{Dir: dir, Nodes: 3, Fairlead: binary, ForwardPorts: true, Out: os.Stdout}
	if fencing {
		o.FastNodeLoss, o.Fencing = true, "{profiles: [{name: rook-ceph}], returning: {readyFor: 5s}}"
	}
	s, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.SeedLonghorn(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.Longhorn().InstallComponents(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.SeedWorkloads(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func install(ctx context.Context, s *sandbox.Sandbox) error {
	if err := s.Install(ctx, sandbox.CertManager); err != nil {
		return err
	}
	return s.RunFairlead(ctx, 2, 2)
}

// fairleadBinary is what make has built.
func fairleadBinary() (string, error) {
	binary := os.Getenv("FAIRLEAD_BINARY")
	if binary == "" {
		return "", errors.New("FAIRLEAD_BINARY does not say which binary to run; use make demo or make up")
	}
	return binary, nil
}

func tour(ctx context.Context, t *tourist, s *sandbox.Sandbox) error {
	const ns = "-n=longhorn-system"
	lh := s.Longhorn()

	t.say("The cluster as Longhorn v1.7.2 leaves it: an RWX volume is in use on node-2")
	t.run(ctx, ns, "get", "volumes.longhorn.io", "-o=custom-columns=NAME:.metadata.name,MODE:.spec.accessMode,STATE:.status.state,NODE:.status.currentNodeID")
	t.run(ctx, append([]string{ns, "get", "settings.fairlead.io"}, networkSettings...)...)

	t.say("A value that can't be right is refused, and told what would be")
	t.refused(ctx, ns, "patch", "settings.longhorn.io", "storage-network", "--type=merge", `-p={"value":"kube-system"}`)

	t.say("A good one is accepted")
	t.run(ctx, ns, "patch", "settings.longhorn.io", "storage-network", "--type=merge", `-p={"value":"kube-system/storage-net"}`)

	t.say("So is the switch for RWX volumes; nothing is hurt: it waits for the volume in use, and says so")
	t.run(ctx, ns, "patch", "settings.longhorn.io", "storage-network-for-rwx-volume-enabled", "--type=merge", `-p={"value":"true"}`)
	if err := t.until(ctx, "the controller has seen it", func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, "", ns, "get", "settings.fairlead.io", "storage-network-for-rwx-volume-enabled", "-o=jsonpath={.status.effectiveValue}/{.status.applied}")
		return out == "true/false", err
	}); err != nil {
		return err
	}
	t.run(ctx, append([]string{ns, "get", "settings.fairlead.io"}, networkSettings...)...)

	t.say("The workload stops (its volume is detached; this tour stands in for Longhorn's manager)")
	t.run(ctx, "scale", "statefulset/web", "--replicas=0")
	if err := s.WaitAttached(ctx, sandbox.SharedVolume, false); err != nil {
		return err
	}
	detached := time.Now()
	if err := lh.Detach(ctx, sandbox.SharedVolume); err != nil {
		return err
	}
	t.say("The roll-out: clients first, node by node; then servers")
	if err := t.watchRollout(ctx, s); err != nil {
		return err
	}
	t.note("applied %.1f s after the detach", time.Since(detached).Seconds())
	t.run(ctx, append([]string{ns, "get", "settings.fairlead.io"}, networkSettings...)...)
	t.run(ctx, ns, "get", "networkrollouts")
	t.run(ctx, ns, "get", "pods", "-l=app=longhorn-csi-plugin", "-o=custom-columns=POD:.metadata.name,NODE:.spec.nodeName,NETWORKS:.metadata.annotations.k8s\\.v1\\.cni\\.cncf\\.io/networks")
	if err := longhornIsHeldOff(ctx, t, s); err != nil {
		return err
	}

	t.say("The workload starts again: Service, server pod and endpoint are on the storage network")
	t.run(ctx, "scale", "statefulset/web", "--replicas=1")
	if err := s.WaitAttached(ctx, sandbox.SharedVolume, true); err != nil {
		return err
	}
	if err := lh.Attach(ctx, sandbox.SharedVolume, "node-2"); err != nil {
		return err
	}
	server := "share-manager-" + sandbox.SharedVolume
	if err := t.until(ctx, "Multus has reported the interface", func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, "", ns, "get", "pod", server, "-o=jsonpath={.metadata.annotations."+`k8s\.v1\.cni\.cncf\.io/network-status}`)
		return out != "", err
	}); err != nil {
		return err
	}
	t.run(ctx, ns, "get", "pod", server, "-o=jsonpath={.metadata.annotations."+`k8s\.v1\.cni\.cncf\.io/networks}{"\n"}{.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}{"\n"}`)
	t.run(ctx, ns, "get", "service", sandbox.SharedVolume)
	t.run(ctx, ns, "get", "sharemanagers.longhorn.io", sandbox.SharedVolume, "-o=custom-columns=NAME:.metadata.name,ENDPOINT:.status.endpoint")
	if t.err != nil {
		return t.err
	}
	return dangerZone(ctx, t, s)
}

var networkSettings = []string{"storage-network", "storage-network-for-rwx-volume-enabled"}

// watchRollout prints each state of the record as it changes.
func (t *tourist) watchRollout(ctx context.Context, s *sandbox.Sandbox) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, "", "-n="+longhorn.DefaultNames().Namespace, "get", "networkrollouts", longhorn.Name,
			"-o=jsonpath={.status.phase}: {.status.message}")
		if err != nil {
			return false, err
		}
		if out != last {
			last = out
			t.note("%s", out)
		}
		applied, err := s.Kubectl(ctx, "", "-n="+longhorn.DefaultNames().Namespace, "get", "settings.fairlead.io", "storage-network-for-rwx-volume-enabled", "-o=jsonpath={.status.applied}")
		return applied == "true", err
	})
	if err != nil {
		return fmt.Errorf("waiting for the roll-out: %w", err)
	}
	return nil
}

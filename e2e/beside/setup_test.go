package beside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/invariants"
	versions "github.com/fairlead-io/fairlead/e2e/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// one cluster is shared by all tests: it takes a minute to start.
var one struct {
	cluster   *Cluster
	installed bool
	output    strings.Builder
}

// scene is the cluster for one test, with or without Fairlead.
type scene struct {
	*Cluster
	*testing.T
	ctx context.Context
}

// without gives the cluster as it is with Longhorn alone; with has Fairlead installed.
func without(t *testing.T) scene { return prepare(t, false) }
func with(t *testing.T) scene    { return prepare(t, true) }

// eachWay runs a scenario in the cluster without Fairlead, and with it.
func eachWay(t *testing.T, scenario func(s scene)) {
	t.Run("Longhorn alone", func(t *testing.T) { scenario(without(t)) })
	t.Run("with Fairlead", func(t *testing.T) { scenario(with(t)) })
}

func prepare(t *testing.T, installed bool) scene {
	t.Helper()
	ctx := t.Context()
	if one.cluster == nil {
		c, err := Start(ctx, Options{Dir: directory(), Fairlead: os.Getenv("FAIRLEAD_BINARY"), Version: os.Getenv(versions.Variable), Out: &one.output})
		if err != nil {
			t.Fatalf("starting: %v\n%s", err, one.output.String())
		}
		one.cluster = c
	}
	s := scene{Cluster: one.cluster, T: t, ctx: ctx}
	began := time.Now()
	s.forgetBackOff()
	s.clear()
	s.configure("", "")
	if one.installed != installed {
		s.must(s.waitSettled(one.installed)) // Fairlead is not removed in the midst of a roll-out
		s.change(installed)
	}
	s.must(s.waitSettled(installed))
	t.Cleanup(func() {
		s := scene{Cluster: s.Cluster, T: t, ctx: context.WithoutCancel(ctx)}
		s.checkInvariants(began)
		if t.Failed() {
			hold(t, s.Cluster)
			s.Log(s.Describe(s.ctx))
		}
	})
	return s
}

// forgetBackOff restarts Longhorn's manager where it backs off. The manager counts in memory how often components restarted, and
// the tests restart them more often in an hour than users do in a year.
func (s scene) forgetBackOff() {
	s.Helper()
	if s.Version.BackOff > 0 {
		s.must(s.Manager.Restart(s.ctx))
	}
}

// configure runs Fairlead, where it is installed, with other networks and maintenance
// windows, until the next test begins.
func (s scene) configure(networks, windows string) {
	s.Helper()
	if one.installed && (s.Networks != networks || s.Windows != windows) {
		s.must(s.Reconfigure(s.ctx, networks, windows))
	}
}

// checkInvariants looks at all writes since a time, as far as Fairlead was installed.
func (s scene) checkInvariants(since time.Time) {
	s.Helper()
	writes, err := s.ReadWrites()
	if err != nil {
		s.Error(err)
	}
	for _, violation := range invariants.Check(writes, invariants.Options{From: since, NodeGate: s.Networks == "gate: node", BackOff: s.Version.BackOff}) {
		s.Error(violation)
	}
}

func (s scene) change(installed bool) {
	s.Helper()
	if installed {
		s.must(s.Install(s.ctx, sandbox.CertManager))
		s.must(s.RunFairlead(s.ctx, 1, 1))
	} else {
		s.remove()
	}
	one.installed = installed
}

// remove does what docs/remove.md says: Longhorn publishes the volumes in use before Fairlead goes.
func (s scene) remove() {
	s.Helper()
	s.Duties = "endpoints: off"
	s.must(s.Reconfigure(s.ctx, s.Networks, s.Windows))
	s.Duties = ""
	_, err := s.Kubectl(s.ctx, "", "-n", Namespace, "wait", "--for=delete", "endpointslices", "-l", "endpointslice.kubernetes.io/managed-by=fairlead.io", "--timeout=1m")
	s.must(err)
	s.must(s.Uninstall(s.ctx))
}

func directory() string {
	if dir := os.Getenv("BESIDE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp("", "beside-")
	if err != nil {
		panic(err)
	}
	return dir
}

func (s scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// clear takes away what an earlier test has left: workloads, volumes, values.
func (s scene) clear() {
	s.Helper()
	s.must(s.Client.DeleteAllOf(s.ctx, &appsv1.Deployment{}, client.InNamespace("default")))
	s.must(s.Client.DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)))
	var volumes longhorn.VolumeList
	s.must(s.Client.List(s.ctx, &volumes, client.InNamespace(Namespace)))
	for _, volume := range volumes.Items {
		s.must(s.WaitVolume(s.ctx, volume.Name, "detached"))
		s.must(s.waitAttachment(volume.Name, false))
		s.must(s.DeleteVolume(s.ctx, volume.Name))
	}
	s.must(s.Set(s.ctx, StorageNetworkForRWX, "false"))
	s.must(s.Set(s.ctx, StorageNetwork, ""))
}

// settleTimeout is long enough for a roll-out on a busy machine, also where Longhorn backs off for two minutes, and retryEvery stands for the hour
// after which Longhorn alone tries a setting again that it has given up.
const (
	settleTimeout = 4 * time.Minute
	retryEvery    = 20 * time.Second
)

// waitSettled waits until all is on the cluster network and no roll-out is underway.
func (s scene) waitSettled(installed bool) error {
	return s.waitNetworks("", "", installed)
}

// waitNetworks waits until the CSI plugin and the instance managers ask for their
// networks, run, and both settings are applied.
func (s scene) waitNetworks(clients, instances string, installed bool) error {
	tried := time.Now()
	return eventually.Until(s.ctx, fmt.Sprintf("clients on %q and instance managers on %q", clients, instances), settleTimeout, func() error {
		if !installed && time.Since(tried) > retryEvery {
			tried = time.Now()
			if err := errors.Join(s.Retry(s.ctx, StorageNetworkForRWX), s.Retry(s.ctx, StorageNetwork)); err != nil {
				return err
			}
		}
		for label, want := range map[string]string{"app=longhorn-csi-plugin": clients, "longhorn.io/component=instance-manager": instances} {
			name, value, _ := strings.Cut(label, "=")
			pods, err := s.Pods(s.ctx, name, value)
			if err != nil {
				return err
			}
			if len(pods) == 0 {
				return fmt.Errorf("there is no pod %s", label)
			}
			for _, pod := range pods {
				if got := Requested(pod.Annotations); got != want || !sandbox.IsReady(&pod) || pod.DeletionTimestamp != nil {
					return fmt.Errorf("pod %s asks for %q, ready: %v", pod.Name, got, sandbox.IsReady(&pod))
				}
			}
		}
		for _, name := range []string{StorageNetwork, StorageNetworkForRWX} {
			if applied, err := s.Applied(s.ctx, name); err != nil || !applied {
				return errors.Join(err, fmt.Errorf("%s is not applied", name))
			}
		}
		if !installed {
			return nil
		}
		rollout, err := s.rollout()
		if err == nil && (rollout.Status.Phase != "Applied" || rollout.Status.Desired != clients) {
			err = fmt.Errorf("the roll-out is at %s %q: %s", rollout.Status.Phase, rollout.Status.Desired, rollout.Status.Message)
		}
		return err
	})
}

func (s scene) rollout() (*v1alpha1.NetworkRollout, error) {
	var rollout v1alpha1.NetworkRollout
	return &rollout, s.Client.Get(s.ctx, key("longhorn"), &rollout)
}

// waitPhase waits until Fairlead's roll-out is in a phase.
func (s scene) waitPhase(phase string) {
	s.Helper()
	s.must(eventually.Until(s.ctx, "the roll-out to be "+phase, settleTimeout, func() error {
		rollout, err := s.rollout()
		if err == nil && rollout.Status.Phase != phase {
			err = fmt.Errorf("it is %s: %s", rollout.Status.Phase, rollout.Status.Message)
		}
		return err
	}))
}

// volume creates one, and has a workload use it. It waits for Kubernetes too: what Kubernetes
// is not done attaching, it may keep attached for minutes.
func (s scene) volume(name, accessMode string) {
	s.Helper()
	s.must(s.CreateVolume(s.ctx, name, accessMode))
	s.must(s.Use(s.ctx, name))
	s.must(s.WaitVolume(s.ctx, name, "attached"))
	s.must(s.waitAttachment(name, true))
}

// release ends the workload and waits until the volume is detached.
func (s scene) release(name string) {
	s.Helper()
	s.must(s.Unuse(s.ctx, name))
	s.must(s.WaitVolume(s.ctx, name, "detached"))
	s.must(s.waitAttachment(name, false))
}

func (s scene) set(name, value string) {
	s.Helper()
	s.must(s.Set(s.ctx, name, value))
}

func (s scene) mark() Mark {
	s.Helper()
	mark, err := s.Mark()
	s.must(err)
	return mark
}

func (s scene) since(mark Mark, keep func(sandbox.Write) bool) []sandbox.Write {
	s.Helper()
	writes, err := s.Since(mark, keep)
	s.must(err)
	return writes
}

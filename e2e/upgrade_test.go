package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestUpgrade brings Fairlead to an installation whose volumes have been in use
// for long, its storage network set for RWO volumes only: as the proposal says,
// RWX volumes stay on the cluster network until they are attached anew with the
// setting on.
func TestUpgrade(t *testing.T) {
	c := newControlPlane(t, options{})
	c.seedLonghorn()
	c.must(c.SeedWorkloads(t.Context()))
	c.set(system, string(catalog.StorageNetwork), netA)
	before := c.service(sandbox.SharedVolume)
	endpoint := c.endpoint(sandbox.SharedVolume)
	if before.Spec.ClusterIP == corev1.ClusterIPNone || !strings.Contains(endpoint, before.Spec.ClusterIP) {
		t.Fatalf("the volume is not on the cluster network to begin with: %s, %s", before.Spec.ClusterIP, endpoint)
	}
	running := c.uids("web-0", "db-0")
	server := c.server(sandbox.SharedVolume)
	c.must(c.Install(t.Context(), sandbox.CertManager))
	c.must(c.RunFairlead(t.Context(), 1, 1))
	unchanged := func() {
		t.Helper()
		c.notRestarted(running, 2*time.Second)
		if now := c.service(sandbox.SharedVolume); now.UID != before.UID || c.endpoint(sandbox.SharedVolume) != endpoint || c.server(sandbox.SharedVolume).UID != server.UID {
			t.Errorf("the volume in use was changed: Service %s, endpoint %s", now.Spec.ClusterIP, c.endpoint(sandbox.SharedVolume))
		}
	}
	unchanged()
	c.set(system, string(catalog.StorageNetworkForRWX), "true")
	unchanged()
	c.eventually("the change waits for the volume", 10*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", "networkrollouts", "longhorn", "-o", "jsonpath={.status.phase} {.status.message}")
		if out != "Waiting 1 RWX volume attached: "+sandbox.SharedVolume {
			return errors.New(out)
		}
		return nil
	})

	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
	c.eventually("the Service is replaced", 10*time.Second, func() error {
		var service corev1.Service
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(before), &service); err != nil {
			return err
		}
		if service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0 {
			return fmt.Errorf("cluster IP %s, selector %v", service.Spec.ClusterIP, service.Spec.Selector)
		}
		for key, value := range before.Labels {
			if service.Labels[key] != value {
				return fmt.Errorf("label %s is lost", key)
			}
		}
		if len(service.OwnerReferences) != 1 || service.OwnerReferences[0].UID != before.OwnerReferences[0].UID {
			return fmt.Errorf("owners %v", service.OwnerReferences)
		}
		return nil
	})
	c.kubectl("scale", "statefulset/web", "--replicas=1")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, true))
	c.must(c.Longhorn().Attach(t.Context(), sandbox.SharedVolume, "node-2", "default/web-0"))
	if want, got := "nfs://"+sandbox.SharedVolume+".longhorn-system.svc.cluster.local/"+sandbox.SharedVolume, c.endpoint(sandbox.SharedVolume); got != want {
		t.Errorf("the endpoint is %s, want %s", got, want)
	}
	if got := c.requested(c.server(sandbox.SharedVolume)).String(); got != netA+"@lhnet1" {
		t.Errorf("the server asks for %q", got)
	}
	if now := c.uids("db-0")["db-0"]; now != running["db-0"] {
		t.Error("the workload of an RWO volume was restarted")
	}
}

// TestUpgradeOfLonghornMovesTheNetwork takes RWX volumes that are on the storage network from Longhorn 1.10 to 1.11, where
// another setting chooses their network, and by another interface.
func TestUpgradeOfLonghornMovesTheNetwork(t *testing.T) {
	const before, after = netA + "@lhnet1", netA + "@lhnet2"
	c := newControlPlane(t, options{longhorn: "v1.10.0"})
	c.must(c.SeedLonghorn(t.Context()))
	stop := c.runManager()
	c.must(c.Install(t.Context(), sandbox.CertManager))
	c.must(c.RunFairlead(t.Context(), 1, 1))
	c.set(system, string(catalog.StorageNetwork), netA)
	c.set(system, string(catalog.StorageNetworkForRWX), "true")
	c.waitApplied(before)
	attach := func(volume string) {
		t.Helper()
		c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: volume, Shared: true}))
		c.must(c.Longhorn().Attach(t.Context(), volume, "node-1"))
	}
	attach("pvc-kept")
	c.servedOn("pvc-kept", before)

	stop()
	c.must(c.UpgradeLonghorn(t.Context(), "v1.11.1"))
	c.runManager()
	c.must(c.WaitClients(t.Context()))
	c.waitWaiting()
	for _, pod := range c.clients() {
		if got := c.requested(&pod).String(); got != before {
			t.Errorf("%s asks for %q while the volume is attached", pod.Name, got)
		}
	}
	c.servedOn("pvc-kept", before)
	c.failOver("pvc-kept", "node-1")
	c.servedOn("pvc-kept", before)
	attach("pvc-new")
	c.servedOn("pvc-new", before)

	for _, volume := range []string{"pvc-kept", "pvc-new"} {
		c.must(c.Longhorn().Detach(t.Context(), volume))
	}
	c.waitApplied(after)
	c.waitApplies(string(catalog.EndpointNetworkForRWX), "true")
	for _, pod := range c.clients() {
		if got := c.requested(&pod).String(); got != after {
			t.Errorf("%s asks for %q in the end", pod.Name, got)
		}
	}
	for _, volume := range []string{"pvc-kept", "pvc-new"} {
		c.must(c.Longhorn().Attach(t.Context(), volume, "node-2"))
		c.servedOn(volume, after)
	}
}

// runManager runs the controllers of a longhorn-manager of Longhorn's version.
func (c *cluster) runManager() (stop func()) {
	c.t.Helper()
	var stops []func()
	for _, run := range []func(context.Context){c.Longhorn().RunEndpoints, c.Longhorn().RunShareManagers, c.Longhorn().SyncSettings} {
		stops = append(stops, c.runUntilStopped(run))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (c *cluster) service(volume string) *corev1.Service {
	c.t.Helper()
	var service corev1.Service
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, &service))
	return &service
}

func (c *cluster) endpoint(volume string) string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", "sharemanagers.longhorn.io", volume, "-o", "jsonpath={.status.endpoint}")
}

// TestRepair has objects come up while Fairlead is away, some in the way of
// others: what can be brought in line is, and of the rest it is said why not.
func TestRepair(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, duties: "remount: on"})
	lh := c.Longhorn()
	const network = netA + "@lhnet2"
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(network)
	for _, v := range []standin.Volume{{Name: "pvc-idle", Shared: true}, {Name: "pvc-used", Shared: true, Claim: "used"}, {Name: "pvc-port", Shared: true}, {Name: "pvc-asks", Claim: "asks"}} {
		c.must(lh.CreateVolume(t.Context(), v))
		c.must(lh.Attach(t.Context(), v.Name, "node-1"))
	}
	c.must(c.Client.Create(t.Context(), c.statefulSet("used", "used")))
	c.must(c.Client.Create(t.Context(), c.statefulSet("asks", "asks")))
	c.waitRunning("used-0", "asks-0")
	c.waitPublished("pvc-idle")
	for _, r := range c.Replicas() {
		c.must(r.Stop())
	}
	// Both servers die, and come back while no webhook adds the network. Longhorn keeps their Services: a network setting of
	// its own waits to be applied.
	c.kubectl("-n", namespace, "patch", system, string(catalog.StorageNetwork), "--subresource=status", "--type=merge", "-p", `{"status":{"applied":false}}`)
	for _, volume := range []string{"pvc-idle", "pvc-used"} {
		c.must(c.Client.Delete(t.Context(), c.server(volume), client.GracePeriodSeconds(0)))
		c.must(lh.Attach(t.Context(), volume, "node-1"))
	}
	c.kubectl("-n", namespace, "delete", "service", "pvc-port")
	c.kubectl("-n", namespace, "create", "service", "nodeport", "pvc-port", "--tcp=2049:2049")
	c.kubectl("-n", namespace, "label", "service", "pvc-port", "longhorn.io/share-manager=pvc-port")
	used := c.server("pvc-used")
	c.must(c.RunFairlead(t.Context(), 1, 1))

	c.eventually("the server that nobody uses is stopped", 30*time.Second, func() error {
		return gone(c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "share-manager-pvc-idle"}, &corev1.Pod{}))
	})
	c.must(lh.Attach(t.Context(), "pvc-idle", "node-1")) // longhorn-manager makes it anew
	c.waitPublished("pvc-idle")
	if c.server("pvc-used").UID != used.UID {
		t.Error("a server was restarted that a workload uses")
	}
	c.eventually("what is out of line is said", 10*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", "networkrollouts", "longhorn", "-o", `jsonpath={range .status.outOfLine[*]}{.kind} {.name} {.message}{"\n"}{end}`) +
			c.kubectl("-n", namespace, "get", "events.events.k8s.io", "-o", `jsonpath={range .items[*]}{.regarding.kind} {.regarding.name} {.reason} {.note}{"\n"}{end}`)
		for _, want := range []string{
			"Server share-manager-pvc-used asks for the cluster network, its Service is for " + network + "; restarted when no started workload uses volume pvc-used",
			"ShareManager pvc-used OutOfLine server pod share-manager-pvc-used asks for network \"\"",
			"pod default/used-0 does",
			"Service pvc-port is for the cluster network, its server would be on " + network + " now; left alone, since it is not of type ClusterIP",
			"ShareManager pvc-port NotClusterIP Service pvc-port is not of type ClusterIP",
			"ShareManager pvc-idle Repaired",
		} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("nothing says %q in\n%s", want, out)
			}
		}
		return nil
	})

	t.Run("a remount that the storage system asks for", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.nextSecond()
		before, others := c.uids("asks-0"), c.uids("used-0")
		requested := time.Now()
		c.must(lh.RequestRemount(t.Context(), "pvc-asks", requested))
		c.eventually("the workload is restarted", 20*time.Second, func() error { return c.allReplaced(before) })
		c.waitRunning("asks-0")
		var pod corev1.Pod
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "asks-0"}, &pod))
		if due := requested.Truncate(time.Second).Add(5 * time.Second); pod.CreationTimestamp.Time.Before(due) { // both without fractions
			t.Errorf("the workload was restarted at %s, before %s", pod.CreationTimestamp, due)
		}
		c.notRestarted(c.uids("asks-0"), 2*time.Second)
		c.notRestarted(others, 0)
	})
}

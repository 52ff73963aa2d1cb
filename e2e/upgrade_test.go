package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestUpgrade installs Fairlead under volumes in use, with a storage network for RWO volumes only. As the proposal says,
// RWX volumes stay on the cluster network until they are attached again with the setting on.
func TestUpgrade(t *testing.T) {
	c := newControlPlane(t, options{})
	c.seedLonghorn()
	c.must(c.SeedWorkloads(t.Context()))
	c.set(system, string(catalog.StorageNetwork), netA)
	before := c.service(sandbox.SharedVolume)
	endpoint := c.endpoint(sandbox.SharedVolume)
	if before.Spec.ClusterIP == corev1.ClusterIPNone || !strings.Contains(endpoint, before.Spec.ClusterIP) {
		t.Fatalf("the volume does not begin on the cluster network: %s, %s", before.Spec.ClusterIP, endpoint)
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
	c.waitIs("rollout", 10*time.Second, "Waiting 1 RWX volume attached: "+sandbox.SharedVolume, func() any { return c.rollout("{.status.phase} {.status.message}") })

	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
	var service corev1.Service
	c.eventually("the Service is replaced", 10*time.Second, func() error {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(before), &service)
		if err == nil && (service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0) {
			err = fmt.Errorf("cluster IP %s, selector %v", service.Spec.ClusterIP, service.Spec.Selector)
		}
		return err
	})
	for key, value := range before.Labels {
		if service.Labels[key] != value {
			t.Errorf("the replaced Service has lost label %s", key)
		}
	}
	if len(service.OwnerReferences) != 1 || service.OwnerReferences[0].UID != before.OwnerReferences[0].UID {
		t.Errorf("the replaced Service has owners %v", service.OwnerReferences)
	}
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
	c.upgradeAndRollBack()
}

// upgradeAndRollBack goes to an earlier version, to the current version, and back again, with volumes in use. Only manifests
// and CRDs differ: no other binary is at hand. No pod restarts, and no setting ceases to be applied.
func (c *cluster) upgradeAndRollBack() {
	c.t.Helper()
	look := func() string {
		var list v1alpha1.SettingList
		c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
		text := fmt.Sprint(c.componentPods(), c.uids("web-0", "db-0"), c.endpoint(sandbox.SharedVolume), c.service(sandbox.SharedVolume).UID, "\n")
		for _, s := range list.Items {
			applied := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied)
			if applied == nil || applied.Status != metav1.ConditionTrue {
				c.t.Errorf("%s is not applied: %+v", s.Name, applied)
				continue
			}
			text += fmt.Sprintln(s.Name, s.Status.EffectiveValue, ptr.Deref(s.Status.AppliedValue, "-"), applied.LastTransitionTime)
		}
		return text
	}
	before := look()
	for _, version := range []struct {
		patches string
		fields  string // of the CRD that tells the versions apart
	}{{sandbox.Earlier, ""}, {"", "array"}, {sandbox.Earlier, ""}} {
		c.must(c.Repatch(c.t.Context(), version.patches))
		fields := c.kubectl("get", "crd", own, "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.status.properties.blockers.type}")
		if fields != version.fields {
			c.t.Fatalf("the version was not installed: blockers are %q", fields)
		}
		c.comesToRest("settings and pods", 2*time.Second, look)
		if now := look(); now != before {
			c.t.Errorf("after a change of version:\n%s\nbefore:\n%s", now, before)
		}
	}
}

// TestUpgradeOfLonghornMovesTheNetwork upgrades Longhorn from 1.10 to 1.11 with RWX volumes on the storage network. In 1.11
// another setting chooses their network, on another interface.
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
	c.attachNew("node-1", standin.Volume{Name: "pvc-kept", Shared: true})
	c.servedOn("pvc-kept", before)

	stop()
	c.must(c.UpgradeLonghorn(t.Context(), "v1.11.1"))
	c.runManager()
	c.must(c.WaitClients(t.Context()))
	c.waitWaiting()
	c.must(c.clientsOn(before, c.State.Nodes...))
	c.servedOn("pvc-kept", before)
	c.failOver("pvc-kept", "node-1")
	c.servedOn("pvc-kept", before)
	c.attachNew("node-1", standin.Volume{Name: "pvc-new", Shared: true})
	c.servedOn("pvc-new", before)

	for _, volume := range []string{"pvc-kept", "pvc-new"} {
		c.must(c.Longhorn().Detach(t.Context(), volume))
	}
	c.waitApplied(after)
	c.waitApplies(string(catalog.EndpointNetworkForRWX), "true")
	c.must(c.clientsOn(after, c.State.Nodes...))
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
	c.get(volume, &service)
	return &service
}

func (c *cluster) endpoint(volume string) string {
	c.t.Helper()
	return c.field("sharemanagers.longhorn.io", volume, "{.status.endpoint}")
}

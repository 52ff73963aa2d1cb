package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestRecordedNetworkIsKeptWhileChangeWaits creates volumes, moves servers and upgrades Longhorn while each kind of change
// waits for an attached volume. Longhorn builds by the new value; everything must be on the recorded network.
func TestRecordedNetworkIsKeptWhileChangeWaits(t *testing.T) {
	for _, longhorn := range []struct {
		version, iface string
		upgrades       []string // of the same network settings
	}{
		{"v1.7.2", "lhnet1", []string{"v1.8.1", "v1.9.0", "v1.10.0"}},
		{"v1.12.0", "lhnet2", []string{"v1.11.1", "v1.12.0", "v1.11.1"}},
	} {
		t.Run(longhorn.version, func(t *testing.T) {
			c := newCluster(t, options{webhooks: 1, controllers: 1, longhorn: longhorn.version, syncs: true, components: true})
			a, b := netA+"@"+longhorn.iface, netB+"@"+longhorn.iface
			for i, change := range []waitingChange{
				{name: "enable", to: netA, wants: a},
				{name: "other", to: netB, whileDetached: longhorn.version == "v1.7.2", clientsOn: a, oldOn: a, newOn: a, wants: b},
				// Servers of new volumes leave first, as clients on the network reach them. No workload has
				// started here, so the old volume need not stay either.
				{name: "disable", clientsOn: b, oldLeaves: true},
			} {
				c.run(change.name, func(_ *testing.T, c *cluster) { c.keepsRecordedNetwork(change, longhorn.version, longhorn.upgrades[i]) })
			}
		})
	}
}

// waitingChange is a change of the network, and where clients and servers are while it waits.
type waitingChange struct {
	name, to string
	// whileDetached: the change is refused while volumes are attached, so a volume attaches
	// after the change, before Fairlead's controller runs and applies it.
	whileDetached bool
	// oldLeaves: Fairlead replaces the old volume's Service and server when the server comes up.
	oldLeaves               bool
	clientsOn, oldOn, newOn string
	// wants is the network of everything in the end.
	wants string
}

func (c *cluster) keepsRecordedNetwork(change waitingChange, version, upgrade string) {
	c.t.Helper()
	old, added := "pvc-"+change.name+"-old", "pvc-"+change.name+"-new"
	if change.whileDetached {
		replicas := c.Replicas()
		c.must(replicas[len(replicas)-1].Stop())
		c.rwxOn(version, change.to)
		c.attachShared(old, "node-1")
		_, err := c.StartReplica(c.t.Context(), sandbox.ControllerDeployment, "controller-again")
		c.must(err)
	} else {
		c.attachShared(old, "node-1")
		c.rwxOn(version, change.to)
	}
	c.waitWaiting()
	c.attachShared(added, "node-2")
	c.servedOn(added, change.newOn)
	c.failOver(added, "node-2")
	c.servedOn(added, change.newOn)
	before := c.service(old) // Fairlead may replace it as soon as the server comes up
	c.failOver(old, "node-1")
	if change.oldLeaves {
		c.waitGone(before)
		c.must(c.Longhorn().Attach(c.t.Context(), old, "node-1"))
	}
	c.servedOn(old, change.oldOn)

	// The deployer of another version recreates the CSI plugin's DaemonSet.
	c.must(c.Longhorn().UpgradePlugin(c.t.Context(), upgrade))
	c.must(c.WaitClients(c.t.Context()))
	c.must(c.clientsOn(change.clientsOn, c.State.Nodes...))
	c.servedOn(old, change.oldOn)

	for _, volume := range []string{old, added} {
		c.must(c.Longhorn().Detach(c.t.Context(), volume))
	}
	c.waitApplied(change.wants)
	c.must(c.Longhorn().Attach(c.t.Context(), added, "node-2"))
	c.servedOn(added, change.wants)
	c.must(c.Longhorn().Detach(c.t.Context(), added))
}

func (c *cluster) attachShared(volume, node string) {
	c.t.Helper()
	c.attachNew(node, standin.Volume{Name: volume, Shared: true, ReplicaNodes: []string{"node-3"}})
}

// failOver kills the volume's server; Longhorn creates another one.
func (c *cluster) failOver(volume, node string) {
	c.t.Helper()
	c.delete(c.server(volume), client.GracePeriodSeconds(0))
	c.must(c.Longhorn().Attach(c.t.Context(), volume, node))
}

// servedOn wants a volume's server, Service, endpoint and published address on one network.
func (c *cluster) servedOn(volume, attachment string) {
	c.t.Helper()
	c.servedIn("cluster.local", volume, attachment)
	c.publishes(volume, attachment)
}

// servedIn wants server, Service and endpoint of a volume on one network.
func (c *cluster) servedIn(domain, volume, attachment string) {
	c.t.Helper()
	server, service := c.server(volume), c.service(volume)
	if got := c.requested(server).String(); got != attachment {
		c.t.Errorf("the server of %s asks for %q, want %q", volume, got, attachment)
	}
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	if headless != (attachment != "") || headless != (len(service.Spec.Selector) == 0) {
		c.t.Errorf("the Service of %s has cluster IP %q and selector %v; its network is %q", volume, service.Spec.ClusterIP, service.Spec.Selector, attachment)
	}
	endpoint := fmt.Sprintf("nfs://%s/%s", service.Spec.ClusterIP, volume)
	if attachment != "" {
		endpoint = fmt.Sprintf("nfs://%[1]s.%[2]s.svc.%[3]s/%[1]s", volume, namespace, domain)
	}
	if got := c.endpoint(volume); got != endpoint {
		c.t.Errorf("the endpoint of %s is %s, want %s", volume, got, endpoint)
	}
}

// publishes waits until the server's address on its network is the first one in ready endpoints.
func (c *cluster) publishes(volume, attachment string) {
	c.t.Helper()
	c.eventually("ready address of "+volume, 10*time.Second, func() error {
		want := c.server(volume).Status.PodIP
		if attachment != "" {
			want = reportedOn(c.server(volume), attachment)
		}
		if all := c.readyAddresses(volume); len(all) == 0 || all[0] != want {
			return fmt.Errorf("published are %v, want %s first", all, want)
		}
		return nil
	})
}

// readyAddresses of all slices of a Service, IPv4 first.
func (c *cluster) readyAddresses(service string) (v4 []string) {
	c.t.Helper()
	var v6 []string
	for _, s := range c.slices(service) {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			if s.AddressType == "IPv4" {
				v4 = append(v4, e.Addresses...)
			} else {
				v6 = append(v6, e.Addresses...)
			}
		}
	}
	return append(v4, v6...)
}

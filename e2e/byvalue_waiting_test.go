package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestRecordedNetworkIsKeptWhileChangeWaits creates volumes, lets servers fail over and upgrades Longhorn while each kind of
// change waits for a volume that is attached. Longhorn builds all of it by the new value; it must be on the recorded network.
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
				// Servers of new volumes leave first: clients on the network reach them. No workload has
				// started here, so the old volume need not stay for its mounts.
				{name: "disable", clientsOn: b, oldLeaves: true},
			} {
				t.Run(change.name, func(t *testing.T) {
					c := &cluster{Sandbox: c.Sandbox, t: t}
					c.keepsRecordedNetwork(change, longhorn.version, longhorn.upgrades[i])
				})
			}
		})
	}
}

// waitingChange is a change of the network, and where clients and servers are while it waits.
type waitingChange struct {
	name, to string
	// whileDetached: the change is refused while volumes are attached, so one attaches
	// after the change, before Fairlead's controller is there to apply it.
	whileDetached bool
	// oldLeaves: Fairlead replaces the old volume's Service and server when the server comes up.
	oldLeaves               bool
	clientsOn, oldOn, newOn string
	// wants is where all are in the end.
	wants string
}

func (c *cluster) keepsRecordedNetwork(change waitingChange, version, upgrade string) {
	c.t.Helper()
	old, added := "pvc-"+change.name+"-old", "pvc-"+change.name+"-new"
	if change.whileDetached {
		replicas := c.Replicas()
		c.must(replicas[len(replicas)-1].Stop())
		c.rwxOn(version, change.to)
		c.attachNew(old, "node-1")
		_, err := c.StartReplica(c.t.Context(), sandbox.ControllerDeployment, "controller-again")
		c.must(err)
	} else {
		c.attachNew(old, "node-1")
		c.rwxOn(version, change.to)
	}
	c.waitWaiting()
	c.attachNew(added, "node-2")
	c.servedOn(added, change.newOn)
	c.failOver(added, "node-2")
	c.servedOn(added, change.newOn)
	c.failOver(old, "node-1")
	if change.oldLeaves {
		c.eventually(old+" is taken off the network", 20*time.Second, func() error {
			err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: old}, &corev1.Service{})
			if err == nil {
				return errors.New("its Service is there")
			}
			return client.IgnoreNotFound(err)
		})
		c.must(c.Longhorn().Attach(c.t.Context(), old, "node-1"))
	}
	c.servedOn(old, change.oldOn)

	// The deployer of another version recreates the CSI plugin's DaemonSet.
	c.must(c.Longhorn().UpgradePlugin(c.t.Context(), upgrade))
	c.must(c.WaitClients(c.t.Context()))
	for _, pod := range c.clients() {
		if got := c.requested(&pod).String(); got != change.clientsOn {
			c.t.Errorf("%s on %s asks for %q, want %q", pod.Name, pod.Spec.NodeName, got, change.clientsOn)
		}
	}
	c.servedOn(old, change.oldOn)

	for _, volume := range []string{old, added} {
		c.must(c.Longhorn().Detach(c.t.Context(), volume))
	}
	c.waitApplied(change.wants)
	c.must(c.Longhorn().Attach(c.t.Context(), added, "node-2"))
	c.servedOn(added, change.wants)
	c.must(c.Longhorn().Detach(c.t.Context(), added))
}

func (c *cluster) attachNew(volume, node string) {
	c.t.Helper()
	c.must(c.Longhorn().CreateVolume(c.t.Context(), standin.Volume{Name: volume, Shared: true, ReplicaNodes: []string{"node-3"}}))
	c.must(c.Longhorn().Attach(c.t.Context(), volume, node))
}

// failOver kills the volume's server; Longhorn makes another.
func (c *cluster) failOver(volume, node string) {
	c.t.Helper()
	c.must(c.Client.Delete(c.t.Context(), c.server(volume), client.GracePeriodSeconds(0)))
	c.must(c.Longhorn().Attach(c.t.Context(), volume, node))
}

func (c *cluster) waitWaiting() {
	c.t.Helper()
	c.eventually("the change waits", 20*time.Second, func() error {
		if out := c.kubectl("-n", namespace, "get", "networkrollouts", "longhorn", "-o", "jsonpath={.status.phase}"); out != "Waiting" {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
}

// servedOn wants everything of a volume to be of one network: server, Service, endpoint and published address.
func (c *cluster) servedOn(volume, attachment string) {
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
		endpoint = fmt.Sprintf("nfs://%[1]s.%[2]s.svc.cluster.local/%[1]s", volume, namespace)
	}
	if got := c.endpoint(volume); got != endpoint {
		c.t.Errorf("the endpoint of %s is %s, want %s", volume, got, endpoint)
	}
	c.publishes(volume, attachment)
}

// publishes wants one address in ready endpoints: the server's on its network, as readers of slices see it.
func (c *cluster) publishes(volume, attachment string) {
	c.t.Helper()
	var last string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		want := c.server(volume).Status.PodIP
		if attachment != "" {
			want = reportedOn(c.server(volume), attachment)
		}
		last = fmt.Sprintf("%v, want %s first", c.readyAddresses(volume), want)
		if all := c.readyAddresses(volume); len(all) > 0 && all[0] == want {
			return
		}
	}
	c.t.Errorf("published for %s: %s", volume, last)
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

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

const (
	rbd      = "rook-ceph.rbd.csi.ceph.com"
	cephfs   = "rook-ceph.cephfs.csi.ceph.com"
	cephFSID = "a815fe8e-eabd-4e87-a6e8-78cebfb67d08"
)

// cephDrivers are what Rook's drivers of one Ceph cluster are to csi-addons.
var cephDrivers = sandbox.CSIAddonsOptions{Drivers: []sandbox.CSIAddonsDriver{
	{
		Name: rbd, ClusterID: "rook-ceph", Client: cephFSID, ControllerNode: "node-3",
		Nodes: map[string][]string{"node-1": {"192.168.50.1/32"}, "node-2": {"192.168.50.2/32", "fd00:50::2/128"}},
	},
	{Name: cephfs, ClusterID: "rook-ceph", Client: cephFSID, ControllerNode: "node-3", Nodes: map[string][]string{"node-1": {"192.168.50.1/32"}}},
}}

const cephSecret = `
apiVersion: v1
kind: Secret
metadata: {name: rook-csi-rbd-provisioner, namespace: rook-ceph}
stringData: {userID: csi-rbd-provisioner, userKey: not-a-key}
`

const rbdFenceClass = `
apiVersion: csiaddons.openshift.io/v1alpha1
kind: NetworkFenceClass
metadata: {name: rbd}
spec:
  provisioner: ` + rbd + `
  parameters:
    clusterID: rook-ceph
    csiaddons.openshift.io/networkfence-secret-name: rook-csi-rbd-provisioner
    csiaddons.openshift.io/networkfence-secret-namespace: rook-ceph
`

var cephfsFenceClass = strings.NewReplacer("{name: rbd}", "{name: cephfs}", rbd, cephfs).Replace(rbdFenceClass)

const fenceByClass = `
apiVersion: csiaddons.openshift.io/v1alpha1
kind: NetworkFence
metadata: {name: by-class}
spec:
  networkFenceClassName: rbd
  fenceState: Fenced
  cidrs: [192.168.50.1/32]
`

const fenceByDriver = `
apiVersion: csiaddons.openshift.io/v1alpha1
kind: NetworkFence
metadata: {name: by-driver}
spec:
  driver: ` + cephfs + `
  fenceState: Fenced
  cidrs: [192.168.50.2/32, "fd00:50::2/128"]
  secret: {name: rook-csi-rbd-provisioner, namespace: rook-ceph}
  parameters: {clusterID: rook-ceph}
`

// TestCSIAddonsIsReal shows what we rely on of csi-addons' own manager and
// sidecars: which clients they say are on a node, that a NetworkFence blocks and
// unblocks, in these words, that it fails and is tried again, and that deleting
// one unblocks nothing.
func TestCSIAddonsIsReal(t *testing.T) {
	c := newControlPlane(t, options{})
	csi := c.startCSIAddons(cephDrivers)

	c.took("clients are told", func() {
		c.apply(cephSecret, rbdFenceClass)
		for node := range cephDrivers.Drivers[0].Nodes {
			c.clientsAre(csi, rbd, node, clientsOf(node))
		}
	})
	c.clientsAre(csi, rbd, "", "")          // the one that fences has no client
	c.clientsAre(csi, cephfs, "node-1", "") // no class for this driver

	c.took("fenced by a class", func() {
		c.apply(fenceByClass)
		c.fenceSays("by-class", "Succeeded|fencing operation successful")
	})
	c.blocked(csi, "192.168.50.1/32")
	c.must(csi.Delay("fence", time.Second, cephfs))
	c.took("fenced by a driver, each call a second late", func() {
		c.apply(fenceByDriver)
		c.fenceSays("by-driver", "Succeeded|fencing operation successful")
	})
	c.blocked(csi, "192.168.50.1/32", "192.168.50.2/32", "fd00:50::2/128")

	c.took("unfenced", func() {
		c.fence("by-driver", "Unfenced")
		c.fenceSays("by-driver", "Succeeded|unfencing operation successful")
	})
	c.blocked(csi, "192.168.50.1/32")
	c.took("the unfenced one is deleted", func() { c.kubectl("delete", "networkfence", "by-driver") })
	c.took("the fenced one is deleted", func() { c.kubectl("delete", "networkfence", "by-class") })
	c.blocked(csi, "192.168.50.1/32") // nobody has unblocked it

	c.must(csi.Fail("unfence", "the mons are away"))
	c.took("it fails", func() {
		c.apply(strings.Replace(fenceByClass, "Fenced", "Unfenced", 1))
		c.fenceSays("by-class", "Failed|rpc error: code = Internal desc = the mons are away")
	})
	c.blocked(csi, "192.168.50.1/32")
	c.must(csi.Heal())
	c.took("it is tried again", func() { c.fenceSays("by-class", "Succeeded|unfencing operation successful") })
	c.blocked(csi)

	c.managerRestarts(csi)
}

// managerRestarts shows what that costs: the manager does again what every
// NetworkFence says, and deletes the CSIAddonsNodes that it can't connect to, and
// what they say of a lost node's clients.
func (c *cluster) managerRestarts(csi *sandbox.CSIAddons) {
	c.t.Helper()
	c.must(csi.LoseNode("node-2"))
	c.clientsAre(csi, rbd, "node-2", clientsOf("node-2")) // nobody has noticed
	before := c.asked(csi, "UnfenceClusterNetwork")
	c.must(csi.StopManager())
	c.must(csi.StartManager(c.t.Context()))
	c.took("it is done again", func() {
		c.eventually("another call", time.Minute, func() error {
			if n := c.asked(csi, "UnfenceClusterNetwork"); n == before {
				return fmt.Errorf("there were %d before, and are now", n)
			}
			return nil
		})
	})
	c.took("the lost node's clients are forgotten", func() {
		c.eventually("the CSIAddonsNode is deleted", time.Minute, func() error {
			if o, err := csi.Node(c.t.Context(), rbd, "node-2"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%v, %v", o, err)
			}
			return nil
		})
	})
	c.took("the node is back", func() {
		c.must(csi.ReturnNode(c.t.Context(), "node-2"))
		c.clientsAre(csi, rbd, "node-2", clientsOf("node-2"))
	})
}

// asked is how often drivers were.
func (c *cluster) asked(csi *sandbox.CSIAddons, what string) int {
	c.t.Helper()
	calls, err := csi.Calls()
	c.must(err)
	return strings.Count(calls, " "+what+" ")
}

// clientsOf a node are what its CSIAddonsNode says of the driver for RBD.
func clientsOf(node string) string {
	cidrs := strings.Join(cephDrivers.Drivers[0].Nodes[node], `","`)
	return fmt.Sprintf(`[{"ClientDetails":[{"cidrs":["%s"],"id":%q}],"networkFenceClassName":"rbd"}]`, cidrs, cephFSID)
}

// startCSIAddons starts csi-addons; what it has logged, and what the drivers were
// asked, is shown if the test fails.
func (c *cluster) startCSIAddons(o sandbox.CSIAddonsOptions) *sandbox.CSIAddons {
	c.t.Helper()
	began := time.Now()
	csi, err := c.StartCSIAddons(c.t.Context(), o)
	c.must(err)
	c.t.Logf("csi-addons is connected to its sidecars: %s", time.Since(began).Round(time.Millisecond))
	c.t.Cleanup(func() {
		calls, err := csi.Calls()
		logs, failed := csi.Logs()
		c.t.Logf("what the drivers were asked: %v\n%s", errors.Join(err, failed), calls)
		for _, log := range logs {
			if c.t.Failed() {
				c.t.Logf("log of %s:\n%s", filepath.Base(log), endOf(log, 1500))
			}
		}
	})
	return csi
}

// took prints how long something took.
func (c *cluster) took(what string, do func()) {
	c.t.Helper()
	began := time.Now()
	do()
	c.t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
}

func (c *cluster) apply(manifests ...string) {
	c.t.Helper()
	_, err := c.Kubectl(c.t.Context(), strings.Join(manifests, "---\n"), "apply", "-f", "-")
	c.must(err)
}

func (c *cluster) fence(name, state string) {
	c.t.Helper()
	c.kubectl("patch", "networkfence", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"fenceState":%q}}`, state))
}

// fenceSays waits until a NetworkFence has this result and message.
func (c *cluster) fenceSays(name, want string) {
	c.t.Helper()
	c.eventually("NetworkFence "+name, time.Minute, func() error {
		if got := c.kubectl("get", "networkfence", name, "-o", "jsonpath={.status.result}|{.status.message}"); got != want {
			return fmt.Errorf("it says %s", got)
		}
		return nil
	})
}

// clientsAre waits until the CSIAddonsNode of a driver's plugin has these clients.
func (c *cluster) clientsAre(csi *sandbox.CSIAddons, driver, node, want string) {
	c.t.Helper()
	o, err := csi.Node(c.t.Context(), driver, node)
	c.must(err)
	c.eventually("the clients of "+o.GetName(), time.Minute, func() error {
		got := c.kubectl("-n", csi.Namespace, "get", "csiaddonsnode", o.GetName(), "-o", "jsonpath={.status.networkFenceClientStatus}")
		if got != want {
			return fmt.Errorf("they are %s, want %s", got, want)
		}
		return nil
	})
}

// blocked is what the storage refuses at this moment.
func (c *cluster) blocked(csi *sandbox.CSIAddons, want ...string) {
	c.t.Helper()
	got, err := csi.Blocked("rook-ceph")
	c.must(err)
	if !slices.Equal(got, want) {
		c.t.Fatalf("%v are blocked, want %v", got, want)
	}
}

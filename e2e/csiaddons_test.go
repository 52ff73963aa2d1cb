package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	fencingcontroller "github.com/fairlead-io/fairlead/controllers/fencing"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cephclients"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

const (
	rbd      = "rook-ceph.rbd.csi.ceph.com"
	cephfs   = "rook-ceph.cephfs.csi.ceph.com"
	cephFSID = "a815fe8e-eabd-4e87-a6e8-78cebfb67d08"
)

// cidrsOf are the addresses of the storage clients on a node.
var cidrsOf = map[string][]string{"node-1": {"192.168.50.1/32"}, "node-2": {"192.168.50.2/32", "fd00:50::2/128"}}

// cephDriver is a driver of Rook's one Ceph cluster.
func cephDriver(name string, nodes ...string) sandbox.CSIAddonsDriver {
	d := sandbox.CSIAddonsDriver{Name: name, ClusterID: "rook-ceph", Client: cephFSID, ControllerNode: "node-3", Nodes: map[string][]string{}}
	for _, node := range nodes {
		d.Nodes[node] = cidrsOf[node]
	}
	return d
}

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
spec: {networkFenceClassName: rbd, fenceState: Fenced, cidrs: [192.168.50.1/32]}
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

// TestCSIAddonsIsReal shows the behaviour of csi-addons' own manager and sidecars that Fairlead relies on: they report
// the clients of a node, fence and unfence, and retry. A deleted NetworkFence stays in effect.
// Fairlead is then installed with fencing off.
func TestCSIAddonsIsReal(t *testing.T) {
	c := newControlPlane(t, options{fencing: `{profiles: [{name: rook-ceph, mode: "off"}], returning: {readyFor: 3s}}`})
	csi := c.startCSIAddons(sandbox.CSIAddonsOptions{Drivers: []sandbox.CSIAddonsDriver{cephDriver(rbd, "node-1", "node-2"), cephDriver(cephfs, "node-1")}})

	c.apply(cephSecret, rbdFenceClass)
	for node := range cidrsOf {
		c.clientsAre(csi, rbd, node, clientsOf(node))
	}
	c.clientsAre(csi, rbd, "", "")          // the controller has no client
	c.clientsAre(csi, cephfs, "node-1", "") // no class for this driver

	c.apply(fenceByClass)
	c.fenceSays("by-class", "Succeeded|fencing operation successful")
	c.blockedAre(csi, "192.168.50.1/32")
	c.must(csi.Delay("fence", time.Second, cephfs))
	c.apply(fenceByDriver)
	c.fenceSays("by-driver", "Succeeded|fencing operation successful")
	c.blockedAre(csi, "192.168.50.1/32", "192.168.50.2/32", "fd00:50::2/128")
	c.kubectl("patch", "networkfence", "by-driver", "--type=merge", "-p", `{"spec":{"fenceState":"Unfenced"}}`)
	c.fenceSays("by-driver", "Succeeded|unfencing operation successful")
	c.blockedAre(csi, "192.168.50.1/32")
	c.kubectl("delete", "networkfence", "by-driver", "by-class")
	c.blockedAre(csi, "192.168.50.1/32") // a deletion unblocks nothing

	c.must(csi.Fail("unfence", "the mons are away"))
	c.apply(strings.Replace(fenceByClass, "Fenced", "Unfenced", 1))
	c.fenceSays("by-class", "Failed|rpc error: code = Internal desc = the mons are away")
	c.blockedAre(csi, "192.168.50.1/32")
	c.must(csi.Heal())
	c.fenceSays("by-class", "Succeeded|unfencing operation successful")
	c.blockedAre(csi)

	c.managerRestarts(csi)
	c.kubectl("delete", "networkfence", "by-class")
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	c.run("ceph clients server", func(_ *testing.T, c *cluster) { c.cephClientsComponent() })
	c.run("fencing that is off removes its fences", func(_ *testing.T, c *cluster) { c.removesFences(csi) })
	c.run("fencing that is off holds nothing while Fairlead is down", func(_ *testing.T, c *cluster) { gates{c}.holdNothing() })
}

// managerRestarts restarts the manager. It repeats what every NetworkFence says, and deletes the CSIAddonsNodes that
// it can't connect to, with the clients of a lost node.
func (c *cluster) managerRestarts(csi *sandbox.CSIAddons) {
	c.t.Helper()
	c.must(csi.LoseNode("node-2"))
	c.clientsAre(csi, rbd, "node-2", clientsOf("node-2")) // nothing has noticed the loss
	calls := func() int {
		calls, err := csi.Calls()
		c.must(err)
		return strings.Count(calls, " UnfenceClusterNetwork ")
	}
	before := calls()
	c.must(csi.StopManager())
	c.must(csi.StartManager(c.t.Context()))
	c.waitIs("another call", time.Minute, true, func() any { return calls() > before })
	c.waitIs("CSIAddonsNode of the lost node is deleted", time.Minute, true, func() any {
		_, err := csi.Node(c.t.Context(), rbd, "node-2")
		return apierrors.IsNotFound(err)
	})
	c.must(csi.ReturnNode(c.t.Context(), "node-2"))
	c.clientsAre(csi, rbd, "node-2", clientsOf("node-2"))
}

// cephClientsComponent shows that the server's pods may run, and that the controller and the server accept each other's
// certificates. What the server asks Ceph is tested in e2e/ceph.
func (c *cluster) cephClientsComponent() {
	c.waitAvailable("fairlead-ceph-clients")
	server, controller := c.mounted("fairlead-ceph-clients-server"), c.mounted("fairlead-ceph-clients-controller")
	c.must(handshake(server, controller))
	if handshake(server, server) == nil || handshake(controller, controller) == nil {
		c.t.Error("a certificate is accepted in the role of the other side")
	}
}

// waitAvailable waits until both replicas run, under the restricted pod security standard.
func (c *cluster) waitAvailable(deployment string) {
	c.t.Helper()
	c.waitIs("available replicas of "+deployment, time.Minute, int32(2), func() any {
		var d appsv1.Deployment
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: deployment}, &d))
		return d.Status.AvailableReplicas
	})
}

// mounted returns a directory with the files of a Secret, once the Secret exists.
func (c *cluster) mounted(name string) string {
	c.t.Helper()
	var secret corev1.Secret
	c.eventually("Secret "+name, time.Minute, func() error {
		return c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: name}, &secret)
	})
	directory := c.t.TempDir()
	for file, content := range secret.Data {
		c.must(os.WriteFile(filepath.Join(directory, file), content, 0o600))
	}
	return directory
}

// handshake is between the server and a client that calls it by the name of its Service.
func handshake(server, by string) error {
	pem, err := os.ReadFile(filepath.Join(by, "ca.crt"))
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(by, "tls.crt"), filepath.Join(by, "tls.key"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	one, other := net.Pipe()
	defer one.Close()
	accepted := make(chan error, 1)
	go func() {
		defer other.Close()
		accepted <- tls.Server(other, cephclients.ServerTLS(server)).Handshake()
	}()
	called := tls.Client(one, &tls.Config{ServerName: "fairlead-ceph-clients.fairlead-system.svc", RootCAs: pool, Certificates: []tls.Certificate{certificate}}).Handshake()
	one.Close()
	return errors.Join(called, <-accepted)
}

// removesFences starts the controller with fencing off and a fence in effect. With the rights of the manifests alone,
// it readmits the node, which has rebooted.
func (c *cluster) removesFences(csi *sandbox.CSIAddons) {
	f := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "stands", Labels: map[string]string{
		fence.NodeLabel: "node-1", fence.BootLabel: "before",
	}}}
	f.Spec.NetworkFenceClassName, f.Spec.CIDRs, f.Spec.FenceState = "rbd", cidrsOf["node-1"], csiaddons.Fenced
	c.must(c.create(f))
	c.waitBlocked(csi, 1)
	node := c.node("node-1")
	c.writeRecord("node-1-before", v1alpha1.NodeFenceSpec{
		NodeName: "node-1", NodeUID: node.UID, Boot: v1alpha1.Boot{SystemUUID: node.Status.NodeInfo.SystemUUID, BootID: "before"},
		Fences: []v1alpha1.Fence{{
			Name: "stands", Driver: rbd, ClusterID: "rook-ceph", Class: "rbd", CIDRs: f.Spec.CIDRs,
			State: v1alpha1.FenceFenced, Since: metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)),
		}},
	})
	c.must(c.RunFairlead(c.t.Context(), 1, 1))
	c.waitPhase("node-1", v1alpha1.NodeHealthy)
	c.waitBlocked(csi, 0)
}

// holdNothing: the controller has switched the policies off, with the rights of the manifests alone. They stay off while
// Fairlead is down, and when the manifests are applied again.
func (g gates) holdNothing() {
	switchedOff := func(what string) {
		g.waitIs(what, time.Minute, true, func() any {
			bindings := g.kubectl("get", "validatingadmissionpolicybinding", registration.UnwatchedAttachments, registration.UnwatchedVolumes, "-o", "yaml")
			return strings.Count(bindings, "key: "+fencingcontroller.OffLabel) == 2
		})
	}
	switchedOff("policies are switched off")
	for _, r := range g.Replicas() {
		g.must(r.Stop())
	}
	g.kubectl("apply", "--server-side", "-f", filepath.Join(g.Root, "manifests/components/fencing/policies.yaml"))
	switchedOff("policies are off after the manifests were applied again")
	g.must(g.create(csiVolume("rbd-a", rbd, "rbd-a-handle")))
	g.inUse("node-1", "rbd-a")
	g.writeRecord("node-1-lost", lostWith("node-1", "rbd-a"))
	g.taint("node-1")
	g.waitPasses("a volume of a lost node", "rbd-a", "node-2")
}

// clientsOf a node, as the CSIAddonsNode of the driver for RBD says.
func clientsOf(node string) string {
	return fmt.Sprintf(`[{"ClientDetails":[{"cidrs":["%s"],"id":%q}],"networkFenceClassName":"rbd"}]`, strings.Join(cidrsOf[node], `","`), cephFSID)
}

// startCSIAddons starts csi-addons. A failed test shows its logs and the calls to the drivers.
func (c *cluster) startCSIAddons(o sandbox.CSIAddonsOptions) *sandbox.CSIAddons {
	c.t.Helper()
	csi, err := c.StartCSIAddons(c.t.Context(), o)
	c.must(err)
	c.t.Cleanup(func() {
		if !c.t.Failed() {
			return
		}
		calls, err := csi.Calls()
		logs, failed := csi.Logs()
		c.t.Logf("calls to the drivers: %v\n%s", errors.Join(err, failed), calls)
		for _, log := range logs {
			c.t.Logf("log of %s:\n%s", filepath.Base(log), endOf(log, 1500))
		}
	})
	return csi
}

func (c *cluster) apply(manifests ...string) {
	c.t.Helper()
	_, err := c.Kubectl(c.t.Context(), strings.Join(manifests, "---\n"), "apply", "-f", "-")
	c.must(err)
}

// fenceSays waits until a NetworkFence has this result and message.
func (c *cluster) fenceSays(name, want string) {
	c.t.Helper()
	c.waitIs("NetworkFence "+name, time.Minute, want, func() any {
		return c.kubectl("get", "networkfence", name, "-o", "jsonpath={.status.result}|{.status.message}")
	})
}

// clientsAre waits until the CSIAddonsNode of a driver's plugin has these clients.
func (c *cluster) clientsAre(csi *sandbox.CSIAddons, driver, node, want string) {
	c.t.Helper()
	o, err := csi.Node(c.t.Context(), driver, node)
	c.must(err)
	c.waitIs("clients of "+o.GetName(), time.Minute, want, func() any {
		return c.kubectl("-n", csi.Namespace, "get", "csiaddonsnode", o.GetName(), "-o", "jsonpath={.status.networkFenceClientStatus}")
	})
}

// blockedAre are the addresses that the storage refuses now.
func (c *cluster) blockedAre(csi *sandbox.CSIAddons, want ...string) {
	c.t.Helper()
	got, err := csi.Blocked("rook-ceph")
	c.must(err)
	if !slices.Equal(got, want) {
		c.t.Fatalf("%v are blocked, want %v", got, want)
	}
}

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// TestSettingsAreJudged shows what a user of kubectl reads: refusals with field and remedy, warnings with blockers.
// Settings of Longhorn are written only to hold `applied`: each write makes every longhorn-manager sync the setting.
func TestSettingsAreJudged(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, workloads: true, auditWrites: true})
	const rwx, networks, notANetwork = "storage-network-for-rwx-volume-enabled", "(in this cluster: kube-system/backup-net, kube-system/storage-net)", "must be <namespace>/<NetworkAttachmentDefinition>"
	for _, test := range []struct{ group, setting, value, want string }{
		{system, "storage-network", "kube-system", `The settings "storage-network" is invalid: value: Invalid value: "kube-system": ` + notANetwork + " " + networks + `, or "" for the cluster network`},
		{system, "storage-network", "A B/C!", notANetwork},
		{system, "storage-network", "ns/", notANetwork},
		{system, "storage-network", "/nad", notANetwork},
		{system, "storage-network", `ns/x"y`, notANetwork},
		{system, "storage-network", " kube-system/storage-net ", `must not begin or end with white space; write "kube-system/storage-net"`},
		{own, "storage-network", netA, "Longhorn has this setting itself: set it in settings.longhorn.io"},
		{system, rwx, "yes", `must be "true" or "false"`},
	} {
		c.has(c.refusedSet(test.group, test.setting, test.value), test.want)
	}
	warns := func(setting, value, want string) {
		t.Helper()
		out, err := c.trySet(system, setting, value, "--dry-run=server")
		c.must(err)
		c.has(out, want)
	}
	warns("storage-network", "kube-system/nowhere", "there is no NetworkAttachmentDefinition kube-system/nowhere "+networks)
	warns(rwx, "true", rwx+" has no effect until storage-network names a network")
	c.has(c.refused("-n", namespace, "delete", system, "storage-network"), "setting storage-network can be changed but not deleted")
	creates := func(accepted bool, manifest, want string) {
		t.Helper()
		out, err := c.Kubectl(t.Context(), manifest, "create", "-f", "-")
		if (err == nil) != accepted {
			t.Errorf("accepted: %v, want %v: %s", err == nil, accepted, manifest)
		}
		c.has(out, want)
	}
	const setting = "apiVersion: fairlead.io/v1alpha1\nkind: Setting\nvalue: x\nmetadata: "
	creates(false, setting+"{name: storage-netwrok, namespace: longhorn-system}", `metadata.name: Unsupported value: "storage-netwrok"`)
	creates(false, setting+"{name: priority-class, namespace: default}", `set priority-class in namespace "longhorn-system"`)
	creates(true, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: misspelled, namespace: default, annotations: {fairlead.io/volume-netwrok: x/y}}\n"+
		"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: none}\n",
		"annotation fairlead.io/volume-netwrok is unknown to Fairlead and has no effect: did you mean fairlead.io/volume-network?")
	c.has(c.kubectl("annotate", "pvc", "misspelled", "fairlead.io/volume-mack=x"), "annotation fairlead.io/volume-mack is unknown")

	// A change that waits names its blockers wherever a user may look.
	c.set(system, "storage-network", netA)
	c.has(c.set(system, rwx, "true"), "Warning: accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart.")
	for _, look := range [][]string{
		{"get", own, rwx}, {"describe", own, rwx}, {"describe", own, "storage-network"}, {"get", "networkrollouts", "longhorn"}, {"get", "events"},
	} {
		c.waitPrints(10*time.Second, append([]string{"-n", namespace}, look...), "1 RWX volume attached: pvc-117d3553")
	}
	if applied := c.field(own, "storage-network", "{.status.applied}"); applied != "false" {
		t.Errorf("storage-network says applied %s while it waits", applied)
	}
	c.waitRWXSetting("false longhorn")
	// Fairlead's own setting can be deleted: it has no value, and the controller recreates it.
	c.kubectl("-n", namespace, "delete", own, rwx)
	c.set(system, rwx, "false")
	c.waitApplied("")

	// The stand-in keeps `applied` true, as Longhorn does while a gate is open. The volume has a cluster IP, so Fairlead
	// holds `applied` false meanwhile.
	const status = "settings/status " + rwx + ": "
	var before []string
	c.waitIs("last write to Longhorn's settings", 20*time.Second, status+`"applied":true`, func() any {
		before = c.appliedWrites()
		return before[len(before)-1]
	})
	c.set(system, rwx, "true")
	c.waitRWXSetting("false longhorn")
	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
	c.waitRWXSetting("true longhorn")
	if got, want := c.appliedWrites()[len(before):], []string{status + `"applied":false`, status + `"applied":true`}; !slices.Equal(got, want) {
		t.Errorf("written to Longhorn's settings: %q, want %q", got, want)
	}
	c.run("examples are accepted", func(_ *testing.T, c *cluster) {
		c.applyExamples("settings-longhorn", "settings-fairlead", "volume-network-static", "volume-network", "configuration-volume-networks", "configuration-windows", "configuration-guard", "configuration-fencing", "configuration-nfs")
	})
}

// waitRWXSetting waits for applied and source of Fairlead's own setting.
func (c *cluster) waitRWXSetting(want string) {
	c.t.Helper()
	c.waitIs("Fairlead's own RWX setting", 20*time.Second, want, func() any {
		return c.field(own, "storage-network-for-rwx-volume-enabled", "{.status.applied} {.status.source}")
	})
}

// appliedWrites are Fairlead's changes of Longhorn's settings.
func (c *cluster) appliedWrites() (changes []string) {
	c.t.Helper()
	writes, err := c.ReadWrites()
	c.must(err)
	for _, w := range writes {
		if w.Group == "longhorn.io" && strings.HasPrefix(w.Resource, "settings") && w.Changed && w.Writer() == "fairlead-controller" {
			changes = append(changes, fmt.Sprintf("%s %s: %s", w.Resource, w.Name, applied.Find(w.Request)))
		}
	}
	return changes
}

var applied = regexp.MustCompile(`"applied":(true|false)`)

// TestNetworkInUse warns whoever changes or deletes a network in use, and whoever creates server pods without their network.
func TestNetworkInUse(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	c.set(own, "endpoint-network-for-rwx-volume", netA)
	c.waitApplied(netA + "@lhnet2")
	c.attachNew("node-1", standin.Volume{Name: "pvc-1", Shared: true})
	const nad = "network-attachment-definitions"
	const uses = "Warning: network kube-system/storage-net is in use by Longhorn: setting endpoint-network-for-rwx-volume, 3 CSI plugin pods, 1 RWX volume (pvc-1)"
	c.has(c.kubectl("-n", "kube-system", "patch", nad, "storage-net", "--type=merge", "-p", `{"spec":{"config":"{\"type\":\"bridge\"}"}}`, "--dry-run=server"), uses+"; pods keep the old configuration until they restart")
	c.has(c.kubectl("-n", "kube-system", "patch", nad, "storage-net", "--type=merge", "-p", `{"spec":{"config":"{}"}}`, "--dry-run=server"), uses+"; the config is no CNI configuration, so pods that request the network do not start until it is corrected")
	c.has(c.kubectl("-n", "kube-system", "delete", nad, "storage-net", "--dry-run=server"), uses+"; pods that request the network do not start until it is created again")
	if other := c.kubectl("-n", "kube-system", "delete", nad, "backup-net", "--dry-run=server"); strings.Contains(other, "Warning") {
		t.Errorf("deleting an unused network warns: %s", other)
	}
	c.run("server pods", func(_ *testing.T, c *cluster) { c.createsServerPods() })
	c.kubectl("-n", "kube-system", "patch", nad, "storage-net", "--type=merge", "-p", `{"spec":{"config":"not json"}}`)
	c.waitHas("rollout", 10*time.Second, func() string { return "|" + c.rollout("{.status.phase} {.status.message}") },
		"|Waiting ", "the config of NetworkAttachmentDefinition kube-system/storage-net is no CNI configuration")
	c.kubectl("-n", "kube-system", "delete", nad, "storage-net")
	c.waitHas("rollout", 10*time.Second, func() string { return "|" + c.rollout("{.status.phase} {.status.message}") },
		"|Waiting ", "NetworkAttachmentDefinition kube-system/storage-net was deleted")
	// Without Fairlead, deletions of settings are not judged, and the namespace can be deleted.
	c.stopFairlead()
	c.kubectl("delete", "namespace", namespace, "--timeout=180s")
}

// createsServerPods creates server pods. Those that can't or must not have their network stay as they are, with a warning.
func (c *cluster) createsServerPods() {
	asks := func(networks string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{multus.NetworksAnnotation: networks} }
	}
	for _, test := range []struct {
		name          string
		change        func(*corev1.Pod)
		warning, asks string
	}{
		{name: "host-network", change: func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			warning: "fairlead: on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet2"},
		{name: "opt-out", change: func(p *corev1.Pod) { p.Annotations = map[string]string{rwx.OptOutAnnotation: "true"} },
			warning: "fairlead: opted out: annotation fairlead.io/opt-out keeps network kube-system/storage-net@lhnet2 off"},
		// Longhorn builds pods by a value that may not be applied, so Fairlead decides on Longhorn's own interface.
		{name: "replaced", change: asks(netB + "@lhnet2"), asks: `[{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}]`},
		{name: "short-form-merged", change: asks(netB + "@net7"), asks: netB + "@net7," + netA + "@lhnet2"},
		{name: "json-merged", change: asks(`[{"name":"backup-net","namespace":"kube-system","mac":"02:00:00:00:00:01"}]`),
			asks: `[{"name":"backup-net","namespace":"kube-system","mac":"02:00:00:00:00:01"}, {"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}]`},
	} {
		pod := serverPod("pvc-" + test.name)
		test.change(pod)
		warnings := c.createWithWarnings(pod)
		if test.warning != "" && !slices.Contains(warnings, test.warning) { // the API server may ask twice
			c.t.Errorf("%s: warned %q, want %q", test.name, warnings, test.warning)
		}
		if got := pod.Annotations[multus.NetworksAnnotation]; got != test.asks {
			c.t.Errorf("%s: asks for %s, want %s", test.name, got, test.asks)
		}
	}
}

// heard collects the warnings of the API server.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

// createWithWarnings creates an object and returns the warnings.
func (c *cluster) createWithWarnings(o client.Object) []string {
	c.t.Helper()
	h := &heard{}
	config := rest.CopyConfig(c.Config)
	config.WarningHandlerWithContext = h
	warned, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	c.must(err)
	c.must(warned.Create(c.t.Context(), o))
	return h.texts
}

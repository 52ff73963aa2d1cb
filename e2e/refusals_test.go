package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestSettingsAreJudged shows what whoever types kubectl reads: refusals with
// field and remedy, warnings with blockers, for both groups.
func TestSettingsAreJudged(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, workloads: true})
	const networks = "(in this cluster: kube-system/backup-net, kube-system/storage-net)"
	notANetwork := `must be <namespace>/<NetworkAttachmentDefinition>`
	patch := func(group, name, value string) []string {
		return []string{"-n", namespace, "patch", group, name, "--type=merge", "-p", fmt.Sprintf(`{"value":%q}`, value)}
	}
	for _, group := range []string{system} {
		for _, test := range []struct{ setting, value, want string }{
			{"storage-network", "kube-system", `The settings "storage-network" is invalid: value: Invalid value: "kube-system": ` + notANetwork + " " + networks + `, or "" for the cluster network`},
			{"storage-network", "A B/C!", notANetwork},
			{"storage-network", "ns/", notANetwork},
			{"storage-network", "/nad", notANetwork},
			{"storage-network", `ns/x"y`, notANetwork},
			{"storage-network-for-rwx-volume-enabled", "yes", `must be "true" or "false"`},
		} {
			t.Run(fmt.Sprintf("%s %s=%q is refused", group, test.setting, test.value), func(t *testing.T) {
				c := &cluster{Sandbox: c.Sandbox, t: t}
				if out := c.refused(patch(group, test.setting, test.value)...); !strings.Contains(out, test.want) {
					t.Errorf("got  %s\nwant %s", out, test.want)
				}
			})
		}
	}
	says := func(want, got string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	says("there is no NetworkAttachmentDefinition kube-system/nowhere "+networks, c.kubectl(append(patch(system, "storage-network", "kube-system/nowhere"), "--dry-run=server")...))
	says(`must not have space around it; write "kube-system/storage-net"`, c.refused(patch(system, "storage-network", " kube-system/storage-net ")...))
	says("longhorn has this setting itself: set it in settings.longhorn.io", c.refused(patch(own, "storage-network", "kube-system/storage-net")...))
	says("has no effect until storage-network names a network", c.kubectl(append(patch(system, "storage-network-for-rwx-volume-enabled", "true"), "--dry-run=server")...))
	says("setting storage-network can be changed but not deleted", c.refused("-n", namespace, "delete", system, "storage-network"))
	out, err := c.Kubectl(t.Context(), "apiVersion: fairlead.io/v1alpha1\nkind: Setting\nmetadata: {name: storage-netwrok, namespace: longhorn-system}\nvalue: x\n", "create", "-f", "-")
	if err == nil {
		t.Error("a setting of an unknown name was created")
	}
	says(`metadata.name: Unsupported value: "storage-netwrok"`, out)
	out, err = c.Kubectl(t.Context(), "apiVersion: fairlead.io/v1alpha1\nkind: Setting\nmetadata: {name: priority-class, namespace: default}\nvalue: x\n", "create", "-f", "-")
	if err == nil {
		t.Error("a setting was created in namespace default, which is not read")
	}
	says(`set priority-class in namespace "longhorn-system" (longhorn)`, out)

	out, err = c.Kubectl(t.Context(), "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: misspelled, namespace: default, annotations: {fairlead.io/volume-netwrok: x/y}}\n"+
		"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: none}\n", "create", "-f", "-")
	if err != nil {
		t.Error(err)
	}
	says("annotation fairlead.io/volume-netwrok is unknown to Fairlead and has no effect: did you mean fairlead.io/volume-network?", out)
	says("annotation fairlead.io/volume-mack is unknown", c.kubectl("annotate", "pvc", "misspelled", "fairlead.io/volume-mack=x"))

	// Pending, with its blockers; then told in every place where one may look.
	c.set(system, "storage-network", netA)
	says("Warning: accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart.",
		c.set(system, "storage-network-for-rwx-volume-enabled", "true"))
	const reason = "1 RWX volume attached: pvc-117d3553"
	c.eventually("the reason is told", 10*time.Second, func() error {
		for _, look := range [][]string{
			{"get", own, "storage-network-for-rwx-volume-enabled"},
			{"describe", own, "storage-network-for-rwx-volume-enabled"},
			{"describe", own, "storage-network"},
			{"get", "networkrollouts", "longhorn"},
			{"get", "events"},
		} {
			if out := c.kubectl(append([]string{"-n", namespace}, look...)...); !strings.Contains(out, reason) {
				return fmt.Errorf("kubectl %s does not say it:\n%s", strings.Join(look, " "), out)
			}
		}
		return nil
	})
	if applied := c.kubectl("-n", namespace, "get", own, "storage-network", "-o", "jsonpath={.status.applied}"); applied != "false" {
		t.Errorf("storage-network says applied %s while it waits", applied)
	}
	// Fairlead's own setting can be deleted: there is no value in it, and the controller creates it again.
	c.kubectl("-n", namespace, "delete", own, "storage-network-for-rwx-volume-enabled")
	c.set(system, "storage-network-for-rwx-volume-enabled", "false")
	c.waitApplied("")
}

// TestNetworkInUse tells whoever changes or deletes a network who uses it.
func TestNetworkInUse(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	c.set(own, "endpoint-network-for-rwx-volume", netA)
	c.waitApplied(netA + "@lhnet2")
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", Shared: true}))
	c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
	const nad = "network-attachment-definitions"
	uses := "Warning: network kube-system/storage-net is in use by longhorn: setting endpoint-network-for-rwx-volume, 3 CSI plugin pods, 1 RWX volume (pvc-1)"
	changed := c.kubectl("-n", "kube-system", "patch", nad, "storage-net", "--type=merge", "-p", `{"spec":{"config":"{}"}}`, "--dry-run=server")
	if !strings.Contains(changed, uses+"; pods keep the old configuration until they restart") {
		t.Errorf("a change says: %s", changed)
	}
	deleted := c.kubectl("-n", "kube-system", "delete", nad, "storage-net", "--dry-run=server")
	if !strings.Contains(deleted, uses+"; pods that ask for it do not start again until it is back") {
		t.Errorf("a deletion says: %s", deleted)
	}
	defer c.namespaceGoesWhileDown()
	if other := c.kubectl("-n", "kube-system", "delete", nad, "backup-net", "--dry-run=server"); strings.Contains(other, "Warning") {
		t.Errorf("the deletion of a network that nobody uses says: %s", other)
	}
	c.kubectl("-n", "kube-system", "delete", nad, "storage-net")
	c.eventually("the deletion is reported", 10*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", "networkrollouts", "longhorn", "-o", "jsonpath={.status.phase} {.status.message}")
		if !strings.HasPrefix(out, "Waiting ") || !strings.Contains(out, "NetworkAttachmentDefinition kube-system/storage-net was deleted") {
			return errors.New(out)
		}
		return nil
	})
}

// namespaceGoesWhileDown deletes the storage system's namespace with nobody to
// judge the deletion of its settings: Kubernetes' clean-up does not wait for it.
func (c *cluster) namespaceGoesWhileDown() {
	c.t.Helper()
	for _, r := range c.Replicas() {
		c.must(r.Stop())
	}
	c.kubectl("delete", "namespace", namespace, "--timeout=180s")
}

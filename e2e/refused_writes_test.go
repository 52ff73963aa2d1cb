package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestRefusedWritesAreShownAndRetried has a ValidatingAdmissionPolicy refuse one kind of the controller's writes after the
// other, while the network of RWX volumes changes under an idle volume. Two minutes, mostly waiting.
func TestRefusedWritesAreShownAndRetried(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	const volume = "pvc-refused"
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: volume, Shared: true}))
	c.must(c.Longhorn().Attach(t.Context(), volume, "node-1")) // so that its Service exists
	c.must(c.Longhorn().Detach(t.Context(), volume))
	network := map[bool]string{true: netA, false: ""}
	applied := map[bool]string{true: netA + "@lhnet2", false: ""}
	on := false
	for _, row := range []struct {
		group, resource, operations, event string
		// attach: the write follows an attachment on the network.
		attach bool
	}{
		{"fairlead.io", "settings/status", "UPDATE", "Setting endpoint-network-for-rwx-volume Refused", false},
		{"fairlead.io", "networkrollouts/status", "UPDATE", "NetworkRollout longhorn Refused", false},
		{"apps", "daemonsets", "UPDATE", "DaemonSet longhorn-csi-plugin Refused", false},
		{"", "pods", "DELETE", "Pod longhorn-csi-plugin-", false},
		{"", "services", "CREATE", "Service " + volume + " Refused", false},
		{"", "services", "DELETE", "Service " + volume + " Refused", false},
		{"discovery.k8s.io", "endpointslices", "CREATE, UPDATE", "Service " + volume + " Refused", true},
		{"", "endpoints", "CREATE, UPDATE", "Service " + volume + " Refused", true},
	} {
		c.run(row.operations+" "+row.resource, func(t *testing.T, c *cluster) {
			if row.attach && !on {
				on = true
				c.set(own, string(catalog.EndpointNetworkForRWX), network[on])
				c.waitApplied(applied[on])
			}
			before := c.inventory()
			c.kubectl("-n", namespace, "delete", "events.events.k8s.io", "--all")
			allow := c.refuseController(row.group, row.resource, row.operations)
			if row.attach {
				c.must(c.Longhorn().Attach(t.Context(), volume, "node-1"))
			} else {
				on = !on
				c.set(own, string(catalog.EndpointNetworkForRWX), network[on])
			}
			c.waitHas("events", 30*time.Second, func() string { return c.events(namespace) }, row.event, "ValidatingAdmissionPolicy 'refuse-fairlead'")
			if after := c.inventory(); !strings.Contains(after, before) && after != before {
				t.Errorf("there is less than before:\n%s\nbefore:\n%s", after, before)
			}
			if !row.attach && c.rollout("{.status.desired}|{.status.phase}") == applied[on]+"|Applied" && row.resource != "settings/status" && row.resource != "networkrollouts/status" {
				t.Error("the refused change counts as applied")
			}
			allow()
			c.waitApplied(applied[on])
			if row.attach {
				c.servedIn("cluster.local", volume, applied[on])
				c.publishes(volume, applied[on])
				c.must(c.Longhorn().Detach(t.Context(), volume))
			}
		})
	}
	c.checkRow(volume, applied[on], "cluster.local")
}

// inventory names what must not become less: the volumes' Services and the DaemonSets.
func (c *cluster) inventory() string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", "services,daemonsets", "-o", "name")
}

// refuseController has the API server refuse writes of Fairlead's controller until the returned function is called.
func (c *cluster) refuseController(group, resource, operations string) (allow func()) {
	c.t.Helper()
	const name = "refuse-fairlead"
	_, err := c.Kubectl(c.t.Context(), fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [%[2]q], apiVersions: ["*"], resources: [%[3]q], operations: [%[4]s]}
      - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}
  matchConditions:
    - {name: controller, expression: "request.userInfo.username in ['system:serviceaccount:fairlead-system:fairlead-controller', 'probe']"}
  validations:
    - {expression: "false", message: a test refuses this}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, group, resource, operations), "create", "-f", "-")
	c.must(err)
	probe := []string{"create", "configmap", "probe", "--dry-run=server", "--as=probe", "--as-group=system:masters"}
	c.eventually("the policy is in effect", 20*time.Second, func() error {
		if out, err := c.tryKubectl(probe...); err == nil {
			return fmt.Errorf("the probe is admitted: %s", out)
		}
		return nil
	})
	return func() {
		c.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)
		c.eventually("the policy is gone", 20*time.Second, func() error { _, err := c.tryKubectl(probe...); return err })
	}
}

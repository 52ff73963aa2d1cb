package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Without these rights, the webhook leaves every volume's Service on the cluster network, and the roll-out stops.
func TestVolumeRequestsMayBeRead(t *testing.T) {
	for file, verbs := range map[string][]string{
		"../base/webhook-rbac.yaml":    {"get", "list"},
		"../base/controller-rbac.yaml": {"get", "list", "watch"},
	} {
		role := clusterRole(t, file)
		for _, resource := range []string{"/persistentvolumes", "/persistentvolumeclaims", "storage.k8s.io/storageclasses"} {
			if got := granted(role.Rules, resource); !slices.Equal(got, verbs) {
				t.Errorf("%s: may %v %s, want %v", file, got, resource, verbs)
			}
		}
		if got := granted(role.Rules, "k8s.cni.cncf.io/network-attachment-definitions"); !slices.Equal(got, verbs[1:]) {
			t.Errorf("%s: may %v networks, want %v", file, got, verbs[1:])
		}
	}
}

// Components are read whole or not at all: a kind that may not be read would stop
// every setting from being applied.
func TestComponentsMayBeRead(t *testing.T) {
	for file, verbs := range map[string][]string{
		"../base/webhook-rbac.yaml":    {"get", "list"},
		"../base/controller-rbac.yaml": {"get", "list", "watch"},
	} {
		role := clusterRole(t, file)
		for _, resource := range []string{"/nodes", "scheduling.k8s.io/priorityclasses"} {
			if got := granted(role.Rules, resource); !slices.Equal(got, verbs) {
				t.Errorf("%s: may %v %s, want %v", file, got, resource, verbs)
			}
		}
	}
	for file, verb := range map[string]string{
		"../longhorn/webhook-rbac.yaml":    "list",
		"../longhorn/controller-rbac.yaml": "watch",
	} {
		rules := namespacedRules(t, file)
		for _, resource := range []string{
			"/pods", "apps/daemonsets", "apps/deployments", "longhorn.io/settings", "longhorn.io/volumes", "longhorn.io/instancemanagers",
			"longhorn.io/engines", "longhorn.io/replicas", "longhorn.io/backingimagemanagers", "longhorn.io/nodes",
		} {
			if got := granted(rules, resource); !slices.Contains(got, verb) {
				t.Errorf("%s: may %v %s, want %s", file, got, resource, verb)
			}
		}
	}
	// The rule on deletions of instance managers reads these one by one.
	for _, resource := range []string{"longhorn.io/instancemanagers", "longhorn.io/volumes"} {
		if got := granted(namespacedRules(t, "../longhorn/webhook-rbac.yaml"), resource); !slices.Contains(got, "get") {
			t.Errorf("the webhook may %v %s, want get", got, resource)
		}
	}
	rules := namespacedRules(t, "../longhorn/controller-rbac.yaml")
	for resource, verb := range map[string]string{
		"/pods": "delete", "apps/daemonsets": "patch", "apps/deployments": "patch", "longhorn.io/instancemanagers": "delete",
	} {
		if got := granted(rules, resource); !slices.Contains(got, verb) {
			t.Errorf("the controller may %v %s, want %s", got, resource, verb)
		}
	}
}

// Without these rights, the gate refuses every attachment of its drivers.
func TestGatesMayReadTheirFacts(t *testing.T) {
	role := clusterRole(t, "../components/fencing/webhook-rbac.yaml")
	watch, get := []string{"get", "list", "watch"}, []string{"get"}
	for resource, verbs := range map[string][]string{
		"fairlead.io/nodefences": watch, "/nodes": watch, "storage.k8s.io/volumeattachments": watch,
		"/persistentvolumes": get, "authorization.k8s.io/subjectaccessreviews": {"create"},
		"storage.k8s.io/csidrivers": nil, "/persistentvolumeclaims": nil, "/configmaps": nil, "/secrets": nil, "/pods": nil,
	} {
		if got := granted(role.Rules, resource); !slices.Equal(got, verbs) {
			t.Errorf("the webhook may %v %s, want %v", got, resource, verbs)
		}
	}
}

// Tenants may create CSIAddonsNodes in their namespaces.
func TestFencingReadsCSIAddonsNodesOfTheStorageNamespaceOnly(t *testing.T) {
	role := clusterRole(t, "../components/fencing/controller-rbac.yaml")
	for _, resource := range []string{"csiaddons.openshift.io/csiaddonsnodes", "/configmaps"} {
		if got := granted(role.Rules, resource); got != nil {
			t.Errorf("the controller may %v %s in all namespaces", got, resource)
		}
	}
}

// Fencing writes to no pods, and to nodes only with a component of its own.
func TestFencingMayNotWritePodsAndNodesByDefault(t *testing.T) {
	watch := []string{"get", "list", "watch"}
	for file, want := range map[string]struct{ pods, nodes []string }{
		"../components/fencing/controller-rbac.yaml":          {watch, watch},
		"../components/fencing-tainting/controller-rbac.yaml": {nil, []string{"patch"}},
	} {
		rules := clusterRole(t, file).Rules
		if got := granted(rules, "/pods"); !slices.Equal(got, want.pods) {
			t.Errorf("%s: may %v pods, want %v", file, got, want.pods)
		}
		if got := granted(rules, "/nodes"); !slices.Equal(got, want.nodes) {
			t.Errorf("%s: may %v nodes, want %v", file, got, want.nodes)
		}
	}
}

func namespacedRules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Do(t, err)
	var role rbacv1.Role
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		if bytes.Contains(document, []byte("kind: Role\n")) {
			must.Do(t, yaml.Unmarshal(document, &role))
			break
		}
	}
	return role.Rules
}

func clusterRole(t *testing.T, file string) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Do(t, err)
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		must.Do(t, yaml.Unmarshal(document, &role))
		if role.Kind == "ClusterRole" {
			return role
		}
	}
	t.Fatalf("%s has no ClusterRole", file)
	return rbacv1.ClusterRole{}
}

// granted are the verbs of all rules on a resource, whatever its name.
func granted(rules []rbacv1.PolicyRule, resource string) (verbs []string) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			if len(r.ResourceNames) == 0 && slices.ContainsFunc(r.Resources, func(name string) bool { return group+"/"+name == resource }) {
				verbs = append(verbs, r.Verbs...)
			}
		}
	}
	return verbs
}

// Without these rights, the controller would restart workloads forever.
func TestRestartsMayBePaused(t *testing.T) {
	rules := namespacedRules(t, "../longhorn/controller-rbac.yaml")
	for resource, verb := range map[string]string{"fairlead.io/networkrollouts": "patch", "fairlead.io/networkrollouts/status": "update"} {
		if got := granted(rules, resource); !slices.Contains(got, verb) {
			t.Errorf("the controller may %v %s, want %s", got, resource, verb)
		}
	}
}

// Storage namespaces have privileged pods: to run a command in one of them is to be root on its node.
func TestNoRoleLetsRunCommandsInPods(t *testing.T) {
	files, roles := 0, 0
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		for document := range bytes.SplitSeq(data, []byte("---\n")) {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(document, &role); err != nil || role.Kind != "ClusterRole" && role.Kind != "Role" {
				continue // a patch may be a list
			}
			roles++
			must.Check(t, role.AggregationRule == nil, "%s: role %s has the rules of others", file, role.Name)
			for _, r := range role.Rules {
				for _, resource := range r.Resources {
					if strings.Contains(resource, "*") || slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy"}, resource) {
						t.Errorf("%s: role %s may %v %s", file, role.Name, r.Verbs, resource)
					}
				}
			}
		}
		return nil
	})
	must.Check(t, err == nil && files >= 10 && roles >= 10, "%d files, %d roles, %v", files, roles, err)
}

// Without these rights, the rules accept every volume, and delay every deletion.
func TestNFSRulesMayReadTheirFacts(t *testing.T) {
	role := clusterRole(t, "../components/nfs/webhook-rbac.yaml")
	for resource, verbs := range map[string][]string{
		"fairlead.io/nfsservices": {"get"}, "/persistentvolumes": {"list"}, "storage.k8s.io/volumeattachments": {"list"}, "/nodes": nil, "/secrets": nil,
	} {
		if got := granted(role.Rules, resource); !slices.Equal(got, verbs) {
			t.Errorf("the webhook may %v %s, want %v", got, resource, verbs)
		}
	}
}

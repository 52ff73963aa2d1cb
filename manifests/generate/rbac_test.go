package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Whoever may not read what volumes ask for would leave every volume's Service
// on the cluster network, or stop rolling out.
func TestWhatVolumesAskForMayBeRead(t *testing.T) {
	for file, verbs := range map[string][]string{
		"../base/webhook-rbac.yaml":    {"get", "list"},
		"../base/controller-rbac.yaml": {"get", "list", "watch"},
	} {
		role := clusterRole(t, file)
		for _, resource := range []string{"/persistentvolumes", "/persistentvolumeclaims", "storage.k8s.io/storageclasses"} {
			if got := granted(role, resource); !slices.Equal(got, verbs) {
				t.Errorf("%s: may %v %s, want %v", file, got, resource, verbs)
			}
		}
		if got := granted(role, "k8s.cni.cncf.io/network-attachment-definitions"); !slices.Equal(got, []string{"list"}) {
			t.Errorf("%s: may %v networks, want list", file, got)
		}
	}
}

func clusterRole(t *testing.T, file string) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			return role
		}
	}
	t.Fatalf("%s has no ClusterRole", file)
	return rbacv1.ClusterRole{}
}

func granted(role rbacv1.ClusterRole, resource string) []string {
	for _, r := range role.Rules {
		for _, group := range r.APIGroups {
			if slices.ContainsFunc(r.Resources, func(name string) bool { return group+"/"+name == resource }) {
				return r.Verbs
			}
		}
	}
	return nil
}

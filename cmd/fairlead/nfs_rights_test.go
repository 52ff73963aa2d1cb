package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestNFSViewersMayReadWhatIsShown(t *testing.T) {
	role := nfsViewer(t)
	funcs, reads := checkReads(t, role.Name, role.Rules)
	reader := nfsReaderOf(t, funcs, nfsWorld()...)
	for _, args := range [][]string{nil, {"storage/files"}} {
		if err := showNFS(t.Context(), &strings.Builder{}, reader, outputTable, args, fencesNoon); err != nil {
			t.Error(err)
		}
	}
	if err := showNFSPlan(t.Context(), &strings.Builder{}, reader, outputTable, []string{"fast/one"}, nfsChanges{}); err != nil {
		t.Error(err)
	}
	if _, _, err := (&clientOptions{}).configuration(t.Context(), fencesClient(t, funcs)); err != nil {
		t.Error(err)
	}
	for _, resource := range []string{"nfsservices", "persistentvolumes", "volumeattachments", "nodes", "configmaps"} {
		if !reads[resource] {
			t.Errorf("%s were not read: %v", resource, reads)
		}
	}
}

func nfsViewer(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile("../../manifests/components/nfs/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Name == "fairlead-nfs-viewer" {
			return role
		}
	}
	t.Fatal("there is no ClusterRole fairlead-nfs-viewer")
	return rbacv1.ClusterRole{}
}

package main

import (
	"bytes"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// On call, the right that is missing is found out too late.
func TestFenceViewersMayReadWhatDrillsRead(t *testing.T) {
	role := fenceViewer(t)
	funcs, reads := checkReads(t, role.Name, role.Rules)
	unattached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfsDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
	live := fencesClient(t, funcs, append(drillWorld(drillRecord(clientOf(rbdDriver, "rbd", "10.0.0.1/32"))), unattached)...)
	if _, err := drill(t, live, outputTable, "node-1"); err != exitUnfenceable {
		t.Errorf("got %v", err)
	}
	if _, _, err := (&clientOptions{}).configuration(t.Context(), live); err != nil {
		t.Error(err)
	}
	if !reads["pods"] || !reads["networkfences"] || len(reads) < 10 {
		t.Errorf("only these were read: %v", reads)
	}
}

func fenceViewer(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile("../../manifests/components/fencing/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	document, _, _ := bytes.Cut(data, []byte("---\n"))
	if err := yaml.UnmarshalStrict(document, &role); err != nil || role.Name != "fairlead-fence-viewer" {
		t.Fatalf("got %s, %v", role.Name, err)
	}
	return role
}

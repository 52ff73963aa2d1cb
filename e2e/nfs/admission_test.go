package nfs

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// names fails the test unless an error names all of the texts.
func names(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in: %v", text, err)
		}
	}
}

func TestBadServiceIsRefusedWithAllProblems(t *testing.T) {
	c := shared(t)
	bad := NewService("bad", nfs.PerNode, ServerAddress(1), ServerAddress(1))
	bad.Spec.Backends = append(bad.Spec.Backends, v1alpha1.NFSBackend{Address: "nfs.example.com"}, v1alpha1.NFSBackend{Address: ServerAddress(2).String(), Weight: ptr.To(int32(5000))})
	bad.Spec.Shares, bad.Spec.Versions = []string{"exports"}, []int32{2}
	bad.Spec.Health.Timeout = duration("10s")
	bad.Spec.MountOptions = []string{"nconect=4"}
	names(t, c.Client.Create(t.Context(), bad), "spec.backends[1]", "spec.backends[2].address", "spec.backends[3].weight", "spec.shares[0]",
		"spec.versions[0]", "spec.health.timeout", "spec.mountOptions")
}

func TestBadVolumesAreRefused(t *testing.T) {
	c := shared(t)
	for _, driver := range []string{Driver, gkeDriver} {
		v := Volume{Name: "bad", Driver: driver, Service: "none", Share: "../exports", Options: []string{"read_ahead_kb=x", "nconect=4"}}
		err := c.CreateVolume(t.Context(), v)
		names(t, err, "spec.csi.volumeAttributes[share]", "spec.mountOptions")
		if err != nil && !strings.Contains(err.Error(), "read_ahead_kb") {
			t.Errorf("the read-ahead is not named: %v", err)
		}
	}
}

func TestMountedServiceIsNotDeleted(t *testing.T) {
	s := newScene(t, "mounted", nfs.PerNodeStable, 1)
	nodes := s.nodes(0, 2)
	s.attach(nodes...)
	names(t, s.c.Client.Delete(s.ctx, s.get()), nodes[0]+" (mounted)", nodes[1]+" (mounted)", "Delete the pods")
	if s.get().DeletionTimestamp != nil {
		t.Error("it is being deleted")
	}
}

// The servers of the example do not exist here. The service gets its addresses all the same, and the claim its volume.
func TestExampleIsAccepted(t *testing.T) {
	c := shared(t)
	const file = "../../docs/examples/nfs-service.yaml"
	kubectl := func(args ...string) string {
		out, err := c.Kubectl(t.Context(), "", args...)
		if err != nil {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
		return out
	}
	if out := kubectl("apply", "-f", file); strings.Contains(out, "Warning") {
		t.Error(out)
	}
	kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/pool-data", "--timeout=1m")
	kubectl("-n", "storage", "wait", "--for=jsonpath={.status.slots[0].address}", "nfsservice/pool", "--timeout=1m")
	kubectl("delete", "-f", file)
}

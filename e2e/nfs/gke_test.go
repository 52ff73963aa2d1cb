package nfs

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

const assignedIP = gkeDriver + "/assigned-ip"

// annotate annotates a node as the other driver does; an empty address removes the annotation.
func (s *scene) annotate(node, address string) {
	s.Helper()
	value := fmt.Sprintf("%q", address)
	if address == "" {
		value = "null"
	}
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.must(s.c.Client.Patch(s.ctx, object, patchJSON(fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, assignedIP, value))))
}

func (s *scene) annotation(node string) string {
	s.Helper()
	var object corev1.Node
	s.must(s.c.Client.Get(s.ctx, client.ObjectKey{Name: node}, &object))
	return object.Annotations[assignedIP]
}

// gkeScene has a PersistentVolume as that driver's documentation writes it: no service,
// the same handle for all, read_ahead_kb among the options.
func gkeScene(t *testing.T) *scene {
	s := newScene(t, gkeService, nfs.PerNode, 4)
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: gkeDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}}
	if err := s.c.Client.Create(s.ctx, driver); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	v := s.volume(Volume{
		Name: "gke-volume", Driver: gkeDriver, Handle: "nfs-server.default.svc.cluster.local/export",
		Options: []string{"nconnect=16", "rsize=1048576", "wsize=1048576", "nolock", "read_ahead_kb=15360"},
	})
	s.volumes[0], s.volumes[1] = v, s.volumes[0]
	return s
}

// Volumes of the GKE driver are served as they are, and its annotations are honoured.
func TestGKEDriversVolumesAreServed(t *testing.T) {
	s := gkeScene(t)
	nodes := s.nodes(0, 8)
	live, unlisted := nodes[2], nodes[3]
	t.Cleanup(func() {
		s.ctx = context.WithoutCancel(s.ctx)
		s.annotate(live, "")
		s.annotate(unlisted, "")
	})
	// Of four servers, the busiest has two of five nodes: a node without annotation would not go there.
	busiest := ""
	for server, n := range s.loads(s.attach(s.nodes(10, 15)...)) {
		if n == 2 {
			busiest = server
		}
	}
	s.annotate(live, busiest)
	s.annotate(unlisted, "10.77.200.1")
	now := s.attach(live)
	if now[live] != busiest {
		t.Errorf("the annotated node got %s, its server %s is alive", now[live], busiest)
	}
	now = s.attach(unlisted)
	if now[unlisted] == "10.77.200.1" || now[unlisted] == "" {
		t.Errorf("a node annotated with an unlisted server got %q", now[unlisted])
	}
	now = s.attach(nodes[0], nodes[1])
	if got := s.annotation(unlisted) + s.annotation(nodes[0]); got != "10.77.200.1" {
		t.Errorf("mode read wrote annotations: %s", got)
	}

	annotationsAreWritten(t, s, now)
}

// annotationsAreWritten writes annotations as the other driver does, for the way back.
func annotationsAreWritten(t *testing.T, s *scene, now map[string]string) {
	_, err := s.c.Kubectl(s.ctx, "", "apply", "-f", filepath.Join(s.c.Root, "manifests/components/nfs-node-annotations/rbac.yaml"))
	s.must(err)
	s.must(s.c.Configure(s.ctx, "write"))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(s.ctx)
		s.must(s.c.Configure(ctx, "read"))
		s.must(s.c.RestartController(ctx))
	})
	s.must(s.c.RestartController(s.ctx))
	annotated := func(want map[string]string) error {
		return s.c.wait(s.ctx, func(context.Context) (bool, error) {
			for _, node := range s.nodes(0, 20) {
				if s.annotation(node) != want[node] {
					return false, nil
				}
			}
			return true, nil
		})
	}
	if err := annotated(now); err != nil {
		t.Errorf("annotations of attached nodes: %v", err)
	}
	s.same(now, s.attached(len(now))) // the restart moved nothing
	gone := s.nodes(0, 2)
	s.detach(gone...)
	for _, node := range gone {
		delete(now, node)
	}
	if err := annotated(now); err != nil {
		t.Errorf("annotations of detached nodes: %v", err)
	}
	s.counted(now)
}

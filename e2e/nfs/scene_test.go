package nfs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// scene is an NFSService with its volumes, whose attachments the test creates itself.
// The end of the test removes all of it.
type scene struct {
	*testing.T
	c       *Cluster
	ctx     context.Context
	service string
	servers []netip.Addr
	volumes []Volume
}

// newScene has the first n shared servers, and a volume.
func newScene(t *testing.T, service string, exposure nfs.Exposure, n int, change ...func(*v1alpha1.NFSService)) *scene {
	t.Helper()
	s := emptyScene(t, service, n)
	object := NewService(service, exposure, s.servers...)
	for _, f := range change {
		f(object)
	}
	s.must(s.c.CreateService(s.ctx, object))
	s.volume(Volume{Name: service, Service: service})
	return s
}

// emptyScene has neither the NFSService nor a volume.
func emptyScene(t *testing.T, service string, n int) *scene {
	t.Helper()
	s := &scene{T: t, c: shared(t), ctx: t.Context(), service: service}
	var err error
	s.servers, err = s.c.servers(s.ctx, n)
	s.must(err)
	t.Cleanup(func() { s.remove(context.WithoutCancel(s.ctx)) })
	return s
}

func (s *scene) volume(v Volume) Volume {
	s.Helper()
	s.volumes = append(s.volumes, v)
	s.must(s.c.CreateVolume(s.ctx, v))
	return v
}

func (s *scene) must(err error) {
	s.Helper()
	must.Do(s, err)
}

// remove reports errors, and continues.
func (s *scene) remove(ctx context.Context) {
	var names []string
	for _, v := range s.volumes {
		names = append(names, v.Name)
		if err := s.c.Detach(ctx, v, s.c.State.Nodes...); err != nil {
			s.Error(err)
		}
	}
	if _, err := s.c.WaitAssigned(ctx, 0, names...); err != nil {
		s.Error(err)
	}
	for _, name := range names {
		if err := s.c.DeleteVolume(ctx, name); err != nil {
			s.Error(err)
		}
	}
	service := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: s.service}}
	if err := s.c.Client.Delete(ctx, service); client.IgnoreNotFound(err) != nil {
		s.Error(err)
	}
}

// nodes of the cluster, by index.
func (s *scene) nodes(from, to int) []string { return s.c.State.Nodes[from:to] }

// attach attaches the first volume to nodes, and returns the addresses of all its nodes.
func (s *scene) attach(nodes ...string) map[string]string {
	s.Helper()
	before, err := s.c.Assignment(s.ctx, s.volumes[0].Name)
	s.must(err)
	s.must(s.c.Attach(s.ctx, s.volumes[0], nodes...))
	return s.attached(len(before.Addresses) + len(nodes))
}

// attached waits until the first volume has so many nodes, and returns their addresses.
func (s *scene) attached(nodes int) map[string]string {
	s.Helper()
	a, err := s.c.WaitAssigned(s.ctx, nodes, s.volumes[0].Name)
	s.must(err)
	return a.Addresses
}

// detach detaches the first volume from nodes.
func (s *scene) detach(nodes ...string) {
	s.Helper()
	before, err := s.c.Assignment(s.ctx, s.volumes[0].Name)
	s.must(err)
	s.must(s.c.Detach(s.ctx, s.volumes[0], nodes...))
	s.attached(len(before.Addresses) - len(nodes))
}

func (s *scene) get() *v1alpha1.NFSService {
	s.Helper()
	service, err := s.c.Service(s.ctx, s.service)
	s.must(err)
	return service
}

func (s *scene) wait(wanted func(*v1alpha1.NFSService) bool) {
	s.Helper()
	s.must(s.c.WaitService(s.ctx, s.service, wanted))
}

func (s *scene) reconfigure(change func(*v1alpha1.NFSServiceSpec)) {
	s.Helper()
	s.must(s.c.ChangeService(s.ctx, s.service, change))
}

// backend of the status; empty if there is none.
func backendOf(service *v1alpha1.NFSService, server netip.Addr) v1alpha1.NFSBackendStatus {
	for _, b := range service.Status.Backends {
		if host(b.Address) == server.String() {
			return b
		}
	}
	return v1alpha1.NFSBackendStatus{}
}

func condition(service *v1alpha1.NFSService, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(service.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// loads counts nodes by server, including servers without nodes.
func (s *scene) loads(addresses map[string]string) map[string]int {
	s.Helper()
	backends, err := s.c.backends(s.ctx, s.service)
	s.must(err)
	loads := Loads(backends, Assignment{Addresses: addresses})
	for _, b := range s.get().Status.Backends {
		loads[host(b.Address)] += 0
	}
	return loads
}

// even fails the test if servers differ by more than one node.
func (s *scene) even(loads map[string]int) {
	s.Helper()
	var counts []int
	for _, n := range loads {
		counts = append(counts, n)
	}
	if len(counts) == 0 || slices.Max(counts)-slices.Min(counts) > 1 {
		s.Errorf("nodes by server: %v", loads)
	}
}

// counted waits until the status counts the nodes of the VolumeAttachments.
func (s *scene) counted(addresses map[string]string) {
	s.Helper()
	loads := s.loads(addresses)
	s.wait(func(now *v1alpha1.NFSService) bool {
		for _, b := range now.Status.Backends {
			if int(b.Nodes) != loads[host(b.Address)] {
				return false
			}
		}
		return int(now.Status.Nodes) == len(addresses)
	})
}

// awaitEvent waits for an event of an NFSService.
func (s *scene) awaitEvent(service, reason string, parts ...string) {
	s.Helper()
	var seen []string
	err := s.c.wait(s.ctx, func(ctx context.Context) (bool, error) {
		var list corev1.EventList
		if err := s.c.Client.List(ctx, &list, client.InNamespace(Namespace)); err != nil {
			return false, err
		}
		seen = nil
		for _, e := range list.Items {
			if e.InvolvedObject.Name != service {
				continue
			}
			seen = append(seen, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
			if e.Reason == reason && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(e.Message, p) }) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		s.Fatalf("no event %s %q of %s; events: %s", reason, parts, service, strings.Join(seen, "\n"))
	}
}

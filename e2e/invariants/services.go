package invariants

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// halvesDiffer: headless ⇔ the endpoint is a name ⇔ the server asks for a network.
func halvesDiffer(s *state, e event) []string {
	switch o := e.after.(type) {
	case *corev1.Pod:
		if service := s.service(o); isServer(o) && e.created() && service != nil {
			return serverDiffers(service, o)
		}
	case *corev1.Service:
		if !e.created() {
			return nil
		}
		var found []string
		for _, server := range s.staying(isServer) {
			if server.Labels[names.VolumeLabel] == o.Name && o.Namespace == names.Namespace {
				found = append(found, serverDiffers(o, server)...)
			}
		}
		return found
	case *longhorn.ShareManager:
		if before, ok := e.before.(*longhorn.ShareManager); o.Status.Endpoint != "" && (!ok || before.Status.Endpoint != o.Status.Endpoint) {
			return s.endpointDiffers(o)
		}
	}
	return nil
}

func (s *state) service(server *corev1.Pod) *corev1.Service {
	return get[*corev1.Service](s, "/services", server.Labels[names.VolumeLabel])
}

func headless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

func serverDiffers(service *corev1.Service, server *corev1.Pod) []string {
	if networks := requests(server.Annotations); headless(service) != (len(networks) == 1) || len(networks) > 1 {
		return []string{fmt.Sprintf("Service %s has cluster IP %s, and server %s asks for networks %v", service.Name, service.Spec.ClusterIP, server.Name, networks)}
	}
	return nil
}

func (s *state) endpointDiffers(sm *longhorn.ShareManager) []string {
	service := get[*corev1.Service](s, "/services", sm.Name)
	if service == nil {
		return nil
	}
	want := fmt.Sprintf("nfs://%s/%s", service.Spec.ClusterIP, sm.Name)
	if headless(service) {
		want = fmt.Sprintf("nfs://%s.%s.svc.cluster.local/%s", sm.Name, sm.Namespace, sm.Name)
	}
	if got := sm.Status.Endpoint; got != want && !strings.EqualFold(got, want) {
		return []string{fmt.Sprintf("the endpoint of volume %s is %s, want %s", sm.Name, got, want)}
	}
	return nil
}

package invariants

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// serverWithoutClients: a server is on a network only while every client that may
// mount it is. Looked at whenever a server or a client is created: what a pod asks
// for does not change. Clients that are Ready when a server comes are there already.
func serverWithoutClients(s *state, e event) []string {
	pod, ok := e.after.(*corev1.Pod)
	if !ok || !e.created() {
		return nil
	}
	servers, clients := s.staying(isServer), s.staying(isClient)
	switch {
	case isServer(pod):
		servers = []*corev1.Pod{pod}
	case isClient(pod):
		clients = []*corev1.Pod{pod}
	default:
		return nil
	}
	var found []string
	for _, server := range servers {
		for _, network := range requests(server.Annotations) {
			for _, c := range clients {
				if !slices.Contains(requests(c.Annotations), network) {
					found = append(found, fmt.Sprintf("server %s is on %s, and client %s does not ask for it", server.Name, network, c.Name))
					continue
				}
				addresses, err := ReportedAddresses(c.Annotations, network)
				if server == pod && sandbox.IsReady(c) && (err != nil || len(addresses) == 0) {
					found = append(found, fmt.Sprintf("server %s is created on %s, where client %s has no address", server.Name, network, c.Name))
				}
			}
		}
	}
	return found
}

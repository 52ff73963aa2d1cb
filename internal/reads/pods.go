package reads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// templateGenerationLabel on a DaemonSet's pods is the generation of the template
// that the pods were created from (k8s.io/kubernetes pkg/controller/daemon).
const templateGenerationLabel = "pod-template-generation"

// Clients gathers the pods that the clients' DaemonSet owns.
func (r *Reader) Clients(ctx context.Context, options ...client.ListOption) ([]rwx.Client, error) {
	var clients []rwx.Client
	err := r.eachPod(ctx, r.names.ClientLabels, func(pod *corev1.Pod) {
		if r.names.OwnsClient(controllerOf(pod)) {
			clients = append(clients, r.clientOf(pod))
		}
	}, options...)
	return clients, err
}

// ClientsOn gathers the client pods of one node.
func (r *Reader) ClientsOn(ctx context.Context, node string) ([]rwx.Client, error) {
	return r.Clients(ctx, client.MatchingFields{NodeField: node})
}

func (r *Reader) clientOf(pod *corev1.Pod) rwx.Client {
	reported := reportedBy(pod)
	client := rwx.Client{
		Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Networks:       r.managedNetworks(pod),
		VolumeNetworks: volumeNetworks(pod),
		Revision:       pod.Labels[appsv1.ControllerRevisionHashLabelKey],
		Ready:          Ready(pod),
		ReadySince:     readySince(pod),
		Created:        pod.CreationTimestamp.Time,
		Interfaces:     reported,
		Terminating:    pod.DeletionTimestamp != nil,
		Sandbox:        sandboxOf(pod, reported), Recorded: recordedNamespace(pod),
	}
	client.NetworksReported = addressed(client.Networks, reported)
	client.VolumeNetworksReported = addressed(client.VolumeNetworks, reported)
	if len(client.Networks) > 0 {
		client.Network = client.Networks[0]
		client.Reported = slices.Contains(client.NetworksReported, client.Network)
	}
	return client
}

// ServersOf gathers the pods that serve one volume.
func (r *Reader) ServersOf(ctx context.Context, volume string) ([]rwx.Server, error) {
	labels := map[string]string{r.names.VolumeLabel: volume}
	maps.Copy(labels, r.names.ServerLabels)
	var servers []rwx.Server
	err := r.eachPod(ctx, labels, func(pod *corev1.Pod) {
		if r.names.OwnsServer(controllerOf(pod), volume) {
			servers = append(servers, r.serverOf(pod))
		}
	})
	return servers, err
}

// RunningServer returns the volume's server pod that is not being deleted, or nil.
func (r *Reader) RunningServer(ctx context.Context, volume string) (*rwx.Server, error) {
	servers, err := r.ServersOf(ctx, volume)
	if err != nil {
		return nil, err
	}
	for i := range servers {
		if !servers[i].Terminating {
			return &servers[i], nil
		}
	}
	return nil, nil
}

func (r *Reader) serverOf(pod *corev1.Pod) rwx.Server {
	server := rwx.Server{
		Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Volume: pod.Labels[r.names.VolumeLabel],
		// The per-volume network comes first: the storage system may have added the default network by itself.
		Networks: append(volumeNetworks(pod), r.managedNetworks(pod)...),
		Reported: reportedBy(pod), Fixed: multus.FixedAddresses(pod.Annotations[multus.NetworksAnnotation]),
		Ready: Ready(pod), ReadySince: readySince(pod), Terminating: pod.DeletionTimestamp != nil,
		Created: pod.CreationTimestamp.Time,
	}
	if len(server.Networks) > 0 {
		server.Network = server.Networks[0]
	}
	return server
}

// volumeNetworks are the per-volume networks that the pod requests.
func volumeNetworks(pod *corev1.Pod) []multus.Attachment {
	if pod.Spec.HostNetwork {
		return nil
	}
	networks, err := multus.VolumeAttachments(pod.Annotations[multus.NetworksAnnotation], pod.Namespace)
	if err != nil {
		return nil
	}
	return networks
}

// reportedBy returns the pod's interfaces that Multus reports; none if the report can't be parsed.
func reportedBy(pod *corev1.Pod) []multus.Reported {
	reported, err := multus.ReportedInterfaces(pod.Annotations)
	if err != nil {
		return nil
	}
	return reported
}

// addressed returns the attachments that have an address reported by Multus.
func addressed(attachments []multus.Attachment, reported []multus.Reported) []multus.Attachment {
	var found []multus.Attachment
	for _, a := range attachments {
		if addresses, err := multus.AddressesOn(reported, a); err == nil && len(addresses) > 0 {
			found = append(found, a)
		}
	}
	return found
}

// managedNetworks are the networks that the pod requests on Longhorn's interfaces. A pod on the
// host network, or with an annotation that can't be parsed, gets no such interface.
func (r *Reader) managedNetworks(pod *corev1.Pod) []multus.Attachment {
	if pod.Spec.HostNetwork {
		return nil
	}
	networks, err := multus.ManagedAttachments(pod.Annotations[multus.NetworksAnnotation], pod.Namespace, r.names.Interfaces())
	if err != nil {
		return nil
	}
	return networks
}

// controllerOf returns the controller that owns a pod; zero if there is none.
func controllerOf(pod *corev1.Pod) rwx.Owner {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return rwx.Owner{}
	}
	return rwx.Owner{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
}

// eachPod visits the pods that have not ended. There may be as many as volumes.
func (r *Reader) eachPod(ctx context.Context, labels map[string]string, take func(*corev1.Pod), options ...client.ListOption) error {
	running := func(pod *corev1.Pod) {
		if !Ended(pod) {
			take(pod)
		}
	}
	if err := lists.ForEach(ctx, r.objects, &corev1.PodList{}, running, append(options, client.InNamespace(r.names.Namespace), client.MatchingLabels(labels))...); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	return nil
}

// Ended reports whether all containers of the pod have ended for good.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// readySince is when the pod became Ready; zero if it is not.
func readySince(pod *corev1.Pod) time.Time {
	if c := condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// Ready reports whether the pod's condition Ready is true.
func Ready(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/storage"
)

// templateGenerationLabel is on the pods of a DaemonSet: the generation of the
// template that they were made from (k8s.io/kubernetes pkg/controller/daemon).
const templateGenerationLabel = "pod-template-generation"

// Clients gathers the client pods.
func (r *Reader) Clients(ctx context.Context) ([]storage.Client, error) {
	pods, err := r.pods(ctx, r.profile.ClientLabels)
	if err != nil {
		return nil, err
	}
	return r.clientsOf(pods), nil
}

// ClientsOn gathers the client pods of one node.
func (r *Reader) ClientsOn(ctx context.Context, node string) ([]storage.Client, error) {
	pods, err := r.pods(ctx, r.profile.ClientLabels)
	if err != nil {
		return nil, err
	}
	elsewhere := func(pod corev1.Pod) bool { return pod.Spec.NodeName != node }
	return r.clientsOf(slices.DeleteFunc(pods, elsewhere)), nil
}

func (r *Reader) clientsOf(pods []corev1.Pod) []storage.Client {
	clients := make([]storage.Client, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		network := r.managedNetwork(pod)
		client := storage.Client{
			Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
			Network:        network,
			VolumeNetworks: volumeNetworks(pod),
			Revision:       pod.Labels[templateGenerationLabel],
			Reported:       reported(pod, network),
			Ready:          Ready(pod),
			Terminating:    pod.DeletionTimestamp != nil,
			Sandbox:        sandboxOf(pod), Recorded: recordedNamespace(pod),
		}
		for _, a := range client.VolumeNetworks {
			if reported(pod, a) {
				client.VolumeNetworksReported = append(client.VolumeNetworksReported, a)
			}
		}
		clients = append(clients, client)
	}
	return clients
}

// Servers gathers the pods that serve shared volumes.
func (r *Reader) Servers(ctx context.Context) ([]storage.Server, error) {
	pods, err := r.pods(ctx, r.profile.ServerLabels)
	if err != nil {
		return nil, err
	}
	servers := make([]storage.Server, 0, len(pods))
	for i := range pods {
		servers = append(servers, r.serverOf(&pods[i]))
	}
	return servers, nil
}

// ServersOf gathers the pods that serve one volume.
func (r *Reader) ServersOf(ctx context.Context, volume string) ([]storage.Server, error) {
	labels := map[string]string{r.profile.VolumeLabel: volume}
	for key, value := range r.profile.ServerLabels {
		labels[key] = value
	}
	pods, err := r.pods(ctx, labels)
	if err != nil {
		return nil, err
	}
	servers := make([]storage.Server, 0, len(pods))
	for i := range pods {
		servers = append(servers, r.serverOf(&pods[i]))
	}
	return servers, nil
}

// RunningServer returns the pod that serves the volume and is not going away, or nil.
func (r *Reader) RunningServer(ctx context.Context, volume string) (*storage.Server, error) {
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

func (r *Reader) serverOf(pod *corev1.Pod) storage.Server {
	reported, err := storage.ReportedInterfaces(pod.Annotations)
	if err != nil {
		reported = nil // as if nothing had been reported yet
	}
	return storage.Server{
		Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Volume:   pod.Labels[r.profile.VolumeLabel],
		Network:  r.serverNetwork(pod),
		Reported: reported, Ready: Ready(pod), Terminating: pod.DeletionTimestamp != nil,
		Created: pod.CreationTimestamp.Time,
	}
}

// serverNetwork is the network that the volume is reached on: its own before
// that of all, which the storage system may have added by itself.
func (r *Reader) serverNetwork(pod *corev1.Pod) storage.Attachment {
	if own := volumeNetworks(pod); len(own) > 0 {
		return own[0]
	}
	return r.managedNetwork(pod)
}

// volumeNetworks are the networks of single volumes that the pod asks for.
func volumeNetworks(pod *corev1.Pod) []storage.Attachment {
	if pod.Spec.HostNetwork {
		return nil
	}
	networks, err := storage.VolumeAttachments(pod.Annotations[storage.NetworksAnnotation], pod.Namespace)
	if err != nil {
		return nil
	}
	return networks
}

func reported(pod *corev1.Pod, network storage.Attachment) bool {
	addresses, err := storage.ReportedAddresses(pod.Annotations, network)
	return err == nil && len(addresses) > 0
}

// managedNetwork is the network that the pod asks for. One that can't be read
// gives the pod no interface; nor does any on the host network.
func (r *Reader) managedNetwork(pod *corev1.Pod) storage.Attachment {
	if pod.Spec.HostNetwork {
		return storage.Attachment{}
	}
	network, err := storage.ManagedAttachment(pod.Annotations[storage.NetworksAnnotation], pod.Namespace, r.profile.Interfaces())
	if err != nil {
		return storage.Attachment{}
	}
	return network
}

// pods lists pods that run or will: not those that ended.
func (r *Reader) pods(ctx context.Context, labels map[string]string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.objects.List(ctx, &list, client.InNamespace(r.profile.Namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return Ended(&pod) }), nil
}

// Ended tells whether the pod ran to its end and is only yet to be removed.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ready tells whether the pod has its condition Ready.
func Ready(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

package cluster

import (
	"context"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// unreadable is what a pod is built with where that can't be read: equal to no
// value that a setting has.
const unreadable = "?"

// instanceManagers are those with a pod, and those that are yet to have one.
func (r *Reader) instanceManagers(ctx context.Context, classes podClasses) ([]catalog.Component, error) {
	var list longhorn.InstanceManagerList
	if err := r.listHere(ctx, &list, "instance managers"); err != nil {
		return nil, err
	}
	pods, err := r.pods(ctx, r.profile.InstanceManagerLabels)
	if err != nil {
		return nil, err
	}
	instances, err := r.instances(ctx, list.Items)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*longhorn.InstanceManager, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	var components []catalog.Component
	for i := range pods {
		pod := &pods[i]
		manager, found := byName[pod.Name]
		if !found {
			manager = &longhorn.InstanceManager{} // on its way out
		}
		delete(byName, pod.Name)
		c := r.podComponent(catalog.InstanceManager, pod, classes)
		c.Engine = pod.Labels[r.profile.EngineLabel]
		if c.Engine == "" {
			c.Engine = manager.Spec.Engine()
		}
		c.ManagerUID, c.ManagerVersion = string(manager.UID), manager.ResourceVersion
		c.Uses = instances.in(manager, c.Name, c.Node, c.Engine)
		c.OtherTolerations = otherTolerations(pod.Annotations[r.profile.TolerationsAnnotation], pod.Spec.Tolerations)
		r.builtOnNetwork(c.Built, pod)
		builtAsInstanceManager(c, pod, manager)
		components = append(components, c)
	}
	for name, manager := range byName {
		engine := manager.Spec.Engine()
		components = append(components, catalog.Component{
			Kind: catalog.InstanceManager, Name: name, Node: manager.Spec.NodeID, Engine: engine, Missing: true,
			ManagerUID: string(manager.UID), ManagerVersion: manager.ResourceVersion,
			Uses: instances.in(manager, name, manager.Spec.NodeID, engine),
		})
	}
	return components, nil
}

// backingImageManagers likewise.
func (r *Reader) backingImageManagers(ctx context.Context, classes podClasses) ([]catalog.Component, error) {
	var list longhorn.BackingImageManagerList
	if err := r.listHere(ctx, &list, "backing image managers"); err != nil {
		return nil, err
	}
	pods, err := r.pods(ctx, r.profile.BackingImageManagerLabels)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*longhorn.BackingImageManager, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	var components []catalog.Component
	for i := range pods {
		c := r.podComponent(catalog.BackingImageManager, &pods[i], classes)
		if manager, found := byName[c.Name]; found {
			c.Uses = filesOnTheirWay(manager)
			delete(byName, c.Name)
		}
		c.OtherTolerations = otherTolerations(pods[i].Annotations[r.profile.TolerationsAnnotation], pods[i].Spec.Tolerations)
		r.builtOnNetwork(c.Built, &pods[i])
		components = append(components, c)
	}
	for name, manager := range byName {
		components = append(components, catalog.Component{
			Kind: catalog.BackingImageManager, Name: name, Node: manager.Spec.NodeID, Missing: true, Uses: filesOnTheirWay(manager),
		})
	}
	return components, nil
}

// shareManagers have a pod while the volume is attached. Which network their
// clients reach them on is no matter of how the pod is built: see settings.Next.
func (r *Reader) shareManagers(volumes []storage.Volume) func(context.Context, podClasses) ([]catalog.Component, error) {
	return func(ctx context.Context, classes podClasses) ([]catalog.Component, error) {
		detached := make(map[string]bool, len(volumes))
		for _, v := range volumes {
			detached[v.Name] = !v.Attached
		}
		components := make([]catalog.Component, 0, len(volumes))
		var last map[catalog.Trait]string
		err := r.eachServerPod(ctx, r.profile.ServerLabels, func(pod *corev1.Pod) {
			c := r.podComponent(catalog.ShareManager, pod, classes)
			delete(c.Built, catalog.NodeSelector) // a StorageClass may add to it (shareManagerNodeSelector)
			// Thousands are built alike: what they are built with is kept once.
			if maps.Equal(c.Built, last) {
				c.Built = last
			}
			last = c.Built
			// One that is not known may be attached.
			if volume := pod.Labels[r.profile.VolumeLabel]; !detached[volume] {
				c.Uses = []string{volume}
			}
			components = append(components, c)
		})
		return components, err
	}
}

// podComponent is what all pods of the storage system have.
func (r *Reader) podComponent(kind catalog.ComponentKind, pod *corev1.Pod, classes podClasses) catalog.Component {
	tolerations := builtTolerations(pod.Annotations[r.profile.TolerationsAnnotation], pod.Spec.Tolerations)
	return catalog.Component{
		Kind: kind, Name: pod.Name, UID: string(pod.UID), Version: pod.ResourceVersion, Node: pod.Spec.NodeName,
		OptOut:      pod.Annotations[storage.OptOutAnnotation] == "true",
		Ready:       Ready(pod),
		Stopped:     pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodFailed,
		Terminating: pod.DeletionTimestamp != nil,
		Built: map[catalog.Trait]string{
			catalog.Tolerations:       tolerations,
			catalog.NodeSelector:      catalog.NodeSelectorTrait(pod.Spec.NodeSelector),
			catalog.PriorityClassName: classes.built(pod.Spec.PriorityClassName),
		},
	}
}

// builtOnNetwork: Multus adds no interface on the host network, so there it is
// no question of how the pod is built.
func (r *Reader) builtOnNetwork(built map[catalog.Trait]string, pod *corev1.Pod) {
	if pod.Spec.HostNetwork {
		return
	}
	network, err := storage.ManagedAttachment(pod.Annotations[storage.NetworksAnnotation], pod.Namespace, []string{r.profile.StorageInterface})
	built[catalog.StorageAttachment] = network.String()
	if err != nil {
		built[catalog.StorageAttachment] = unreadable
	}
}

// builtAsInstanceManager adds what only instance managers have. Source:
// longhorn-manager controller/instance_manager_controller.go, createInstanceManagerPodSpec.
func builtAsInstanceManager(c catalog.Component, pod *corev1.Pod, manager *longhorn.InstanceManager) {
	c.Built[catalog.DataEngine] = "true" // it is there
	for _, v := range pod.Spec.Volumes {
		if v.Name == caches.LogVolume && v.HostPath != nil {
			c.Built[catalog.LogPathTrait] = catalog.LogDirectoryTrait(v.HostPath.Path)
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return
	}
	container := &pod.Spec.Containers[0]
	c.Built[catalog.CPURequest] = catalog.CPUTrait(*container.Resources.Requests.Cpu())
	if probe := container.LivenessProbe; probe != nil {
		c.Built[catalog.LivenessTimeout] = strconv.Itoa(int(probe.TimeoutSeconds))
	}
	if c.Engine == catalog.EngineV2 {
		builtWithSPDK(c.Built, container, manager.Spec.DataEngineSpec.V2)
	}
}

// builtWithSPDK adds what the daemon of the v2 data engine is started with. What
// the instance manager has of its own goes by no setting.
func builtWithSPDK(built map[catalog.Trait]string, container *corev1.Container, own longhorn.V2DataEngineSpec) {
	args := container.Args
	// The mask is empty where the number of cores wins over it.
	if mask, _ := argument(args, "--spdk-cpumask"); mask != "" && own.CPUMask == "" {
		built[catalog.CPUMask] = catalog.CPUMaskTrait(mask)
	}
	memory, told := argument(args, "--spdk-memory-size")
	if !told { // before Longhorn 1.10 it takes what huge pages there are
		if limit, ok := container.Resources.Limits[caches.Hugepages]; ok {
			built[catalog.MemorySize] = catalog.MemoryTrait(limit)
		}
		return
	}
	built[catalog.MemorySize] = memory
	built[catalog.Hugepages] = strconv.FormatBool(!slices.Contains(args, "--spdk-no-hugepage"))
	built[catalog.InterruptMode] = strconv.FormatBool(slices.Contains(args, "--spdk-interrupt-mode"))
	cores, told := argument(args, "--spdk-core-number")
	if !told { // before Longhorn 1.12.1
		return
	}
	built[catalog.CPUCores] = cores
	built[catalog.LargePool] = poolSize(args, "--spdk-iobuf-large-pool-size", catalog.DefaultLargePool)
	built[catalog.SmallPool] = poolSize(args, "--spdk-iobuf-small-pool-size", catalog.DefaultSmallPool)
	if own.CPUIsolation == "" {
		isolated := slices.Contains(args, "--enable-irq-affinity") && slices.Contains(args, "--enable-workqueue-affinity")
		built[catalog.CPUIsolation] = strconv.FormatBool(isolated)
	}
}

// poolSize of SPDK's buffers: Longhorn leaves the default out.
func poolSize(args []string, flag string, standard int) string {
	if size, ok := argument(args, flag); ok {
		return size
	}
	return strconv.Itoa(standard)
}

// argument is what follows a flag.
func argument(args []string, flag string) (string, bool) {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1], true
	}
	return "", false
}

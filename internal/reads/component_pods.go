package reads

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/longhorn/components"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// unreadable is the value of a trait that can't be parsed: no setting has this value.
const unreadable = "?"

// instanceManagers are all instance managers, with and without a pod.
func (r *Reader) instanceManagers(ctx context.Context, pods storagePods, detached map[string]bool, asReported bool) ([]catalog.Component, error) {
	var list longhorn.InstanceManagerList
	if err := r.listHere(ctx, &list, "instance managers"); err != nil {
		return nil, err
	}
	var instances components.Instances
	if !asReported {
		var err error
		if instances, err = r.instances(ctx, list.Items); err != nil {
			return nil, err
		}
	}
	uses := func(m *longhorn.InstanceManager, name, node, engine string) []string {
		used := instances.In(m, name, node, engine)
		for _, shard := range components.Shards(m) {
			if !detached[shard.Volume] {
				used = append(used, shard.Name)
			}
		}
		return used
	}
	byName := make(map[string]*longhorn.InstanceManager, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	var built []catalog.Component
	for i := range pods.instanceManagers {
		pod := &pods.instanceManagers[i]
		manager, found := byName[pod.Name]
		if !found {
			manager = &longhorn.InstanceManager{} // deleted before its pod
		}
		delete(byName, pod.Name)
		c := r.podComponent(catalog.InstanceManager, pod, pods.classes)
		c.Engine = pod.Labels[r.names.EngineLabel]
		if c.Engine == "" {
			c.Engine = manager.Spec.Engine()
		}
		c.ManagerUID, c.ManagerVersion = string(manager.UID), manager.ResourceVersion
		c.Uses = uses(manager, c.Name, c.Node, c.Engine)
		c.OtherTolerations = otherTolerations(pod.Annotations[r.names.TolerationsAnnotation], pod.Spec.Tolerations)
		r.builtOnNetwork(&c, pod)
		components.AddBuilt(c, pod, manager)
		built = append(built, c)
	}
	for name, manager := range byName {
		engine := manager.Spec.Engine()
		built = append(built, catalog.Component{
			Kind: catalog.InstanceManager, Name: name, Node: manager.Spec.NodeID, Engine: engine, Missing: true,
			ManagerUID: string(manager.UID), ManagerVersion: manager.ResourceVersion,
			Uses: uses(manager, name, manager.Spec.NodeID, engine),
		})
	}
	return built, nil
}

// backingImageManagers are all backing image managers, with and without a pod.
func (r *Reader) backingImageManagers(ctx context.Context, pods storagePods) ([]catalog.Component, error) {
	var list longhorn.BackingImageManagerList
	if err := r.listHere(ctx, &list, "backing image managers"); err != nil {
		return nil, err
	}
	byName := make(map[string]*longhorn.BackingImageManager, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	var built []catalog.Component
	for i := range pods.backingImageManagers {
		pod := &pods.backingImageManagers[i]
		c := r.podComponent(catalog.BackingImageManager, pod, pods.classes)
		if manager, found := byName[c.Name]; found {
			c.Uses = components.FilesInUse(manager)
			delete(byName, c.Name)
		}
		c.OtherTolerations = otherTolerations(pod.Annotations[r.names.TolerationsAnnotation], pod.Spec.Tolerations)
		r.builtOnNetwork(&c, pod)
		built = append(built, c)
	}
	for name, manager := range byName {
		built = append(built, catalog.Component{
			Kind: catalog.BackingImageManager, Name: name, Node: manager.Spec.NodeID, Missing: true, Uses: components.FilesInUse(manager),
		})
	}
	return built, nil
}

// podComponent has the traits of all pods of the storage system.
func (r *Reader) podComponent(kind catalog.ComponentKind, pod *corev1.Pod, classes podClasses) catalog.Component {
	tolerations := builtTolerations(pod.Annotations[r.names.TolerationsAnnotation], pod.Spec.Tolerations)
	return catalog.Component{
		Kind: kind, Name: pod.Name, UID: string(pod.UID), Version: pod.ResourceVersion, Node: pod.Spec.NodeName,
		OptOut:      pod.Annotations[rwx.OptOutAnnotation] == "true",
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

// builtOnNetwork adds the storage network of a pod. Multus adds no interface to pods on the host
// network: they have no such trait. A pod without its address can't be reached by the others, and is not Ready.
func (r *Reader) builtOnNetwork(c *catalog.Component, pod *corev1.Pod) {
	if pod.Spec.HostNetwork {
		return
	}
	network, err := multus.ManagedAttachment(pod.Annotations[multus.NetworksAnnotation], pod.Namespace, []string{r.names.StorageInterface})
	if c.Built[catalog.StorageAttachment] = network.String(); c.Ready && !network.IsZero() && len(addressed([]multus.Attachment{network}, reportedBy(pod))) == 0 {
		c.Ready, c.Unaddressed = false, true
	}
	if err != nil {
		c.Built[catalog.StorageAttachment] = unreadable
	}
}

// instances that engines and replicas name. Instance managers report theirs themselves, once these have started.
func (r *Reader) instances(ctx context.Context, managers []longhorn.InstanceManager) (components.Instances, error) {
	found := components.NewInstances(managers)
	err := eachHere(ctx, r, &longhorn.EngineList{}, "engines", func(e *longhorn.Engine) { found.Add(e.Name, &e.Spec, &e.Status) })
	if err != nil {
		return found, err
	}
	err = eachHere(ctx, r, &longhorn.ReplicaList{}, "replicas", func(replica *longhorn.Replica) { found.Add(replica.Name, &replica.Spec, &replica.Status) })
	return found, err
}

// InstanceManagerUses reads the current users of an instance manager.
func (r *Reader) InstanceManagerUses(ctx context.Context, c catalog.Component) ([]string, error) {
	var managers longhorn.InstanceManagerList
	if err := r.listHere(ctx, &managers, "instance managers"); err != nil {
		return nil, err
	}
	// Engines and replicas are written first, so they are read last.
	instances, err := r.instances(ctx, managers.Items)
	if err != nil {
		return nil, err
	}
	manager := &longhorn.InstanceManager{} // a deleted instance manager reports nothing
	if i := slices.IndexFunc(managers.Items, func(m longhorn.InstanceManager) bool { return m.Name == c.Name }); i >= 0 {
		manager = &managers.Items[i]
	}
	uses := instances.In(manager, c.Name, c.Node, c.Engine)
	for _, shard := range components.Shards(manager) {
		if detached, _, err := r.isDetached(ctx, shard.Volume); err != nil {
			return nil, err
		} else if !detached {
			uses = append(uses, shard.Name)
		}
	}
	return uses, nil
}

// isDetached reads a volume. known is false if there is none.
func (r *Reader) isDetached(ctx context.Context, name string) (detached, known bool, err error) {
	var v longhorn.Volume
	err = r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: name}, &v)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("reading volume %s: %w", name, err)
	}
	return v.Detached(), true, nil
}

// InstanceManagerFacts reads the facts for judging the deletion of an instance manager's pod. It reads
// single objects only, because the deletion waits, and stops at the first that allows the deletion.
func (r *Reader) InstanceManagerFacts(ctx context.Context, name, node string) (planner.InstanceManagerFacts, error) {
	var facts planner.InstanceManagerFacts
	var manager longhorn.InstanceManager
	err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: name}, &manager)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return facts, nil
	}
	if err != nil {
		return facts, fmt.Errorf("reading instance manager %s: %w", name, err)
	}
	facts.Running = manager.DeletionTimestamp == nil && manager.Status.CurrentState == longhorn.InstanceRunning
	if !facts.Running {
		return facts, nil
	}
	var on corev1.Node
	if err := r.objects.Get(ctx, client.ObjectKey{Name: node}, &on); client.IgnoreNotFound(err) != nil {
		return facts, fmt.Errorf("reading node %s: %w", node, err)
	}
	if facts.NodeReady = nodeReady(&on); !facts.NodeReady {
		return facts, nil
	}
	facts.Instance, facts.Volume, err = r.attachedInstance(ctx, &manager)
	return facts, err
}

// attachedInstance is the first instance that runs for an attached volume; its names are empty if there is none.
// An instance without a volume is left over, and unused.
func (r *Reader) attachedInstance(ctx context.Context, m *longhorn.InstanceManager) (instance, volume string, err error) {
	looked := map[string]bool{"": true}
	for _, instance := range components.RunningInstances(m) {
		if looked[instance.Volume] {
			continue
		}
		looked[instance.Volume] = true
		if detached, known, err := r.isDetached(ctx, instance.Volume); err != nil {
			return "", "", err
		} else if known && !detached {
			return instance.Name, instance.Volume, nil
		}
	}
	return "", "", nil
}

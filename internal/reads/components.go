package reads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// components gathers the pods and templates that settings shape, sorted by kind, node and name.
// asReported is that of FactsOptions.
func (r *Reader) components(ctx context.Context, pods storagePods, volumes []rwx.Volume, nodes catalog.Nodes, asReported bool) ([]catalog.Component, error) {
	all, err := r.templates(ctx, pods, nodes)
	if err != nil {
		return nil, err
	}
	backing, err := r.backingImageManagers(ctx, pods)
	if err != nil {
		return nil, err
	}
	// A volume that is not known may be attached.
	detached := make(map[string]bool, len(volumes))
	for _, v := range volumes {
		detached[v.Name] = !v.Attached
	}
	instance, err := r.instanceManagers(ctx, pods, detached, asReported)
	if err != nil {
		return nil, err
	}
	all = slices.Concat(all, backing, instance, pods.shareManagers)
	for i, c := range all {
		if c.Kind == catalog.ShareManager && detached[c.Uses[0]] {
			all[i].Uses = nil
		}
	}
	slices.SortFunc(all, func(a, b catalog.Component) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// listHere lists objects in Longhorn's namespace, for reading only: the cache owns them.
// A kind that is not installed has none.
func (r *Reader) listHere(ctx context.Context, list client.ObjectList, what string) error {
	if err := r.objects.List(ctx, list, client.InNamespace(r.names.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

// eachHere visits the objects that listHere would list.
func eachHere[T client.Object](ctx context.Context, r *Reader, list client.ObjectList, what string, take func(T)) error {
	if err := lists.ForEach(ctx, r.objects, list, take, client.InNamespace(r.names.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

// templates returns the Deployments and DaemonSets that the storage system creates
// itself. Those of its installation belong to the installer.
func (r *Reader) templates(ctx context.Context, pods storagePods, nodes catalog.Nodes) ([]catalog.Component, error) {
	var deployments appsv1.DeploymentList
	if err := r.objects.List(ctx, &deployments, client.InNamespace(r.names.Namespace), client.MatchingLabels(r.names.ManagedLabels)); err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	var templates []catalog.Component
	for i := range deployments.Items {
		templates = append(templates, r.deployment(&deployments.Items[i]))
	}
	managed := labels.SelectorFromSet(r.names.ManagedLabels)
	for i := range pods.daemonSets {
		ds := &pods.daemonSets[i]
		if ds.Name != r.names.ClientDaemonSet && !managed.Matches(labels.Set(ds.Labels)) {
			continue
		}
		c := r.daemonSet(ds)
		if !c.Ready {
			withoutLostNodes(ds, pods.daemonPods[ds.UID], nodes, &c)
		}
		templates = append(templates, c)
	}
	return templates, nil
}

func (r *Reader) deployment(d *appsv1.Deployment) catalog.Component {
	c := r.templateComponent(catalog.Deployment, &d.ObjectMeta, &d.Spec.Template)
	s := d.Status
	c.Total = int(ptr.Deref(d.Spec.Replicas, 1))
	c.Stopped = s.ObservedGeneration >= d.Generation && c.Total > 0 && s.AvailableReplicas == 0 && s.ReadyReplicas == 0
	if s.ObservedGeneration >= d.Generation {
		c.Updated = int(s.UpdatedReplicas)
		// Pods of an older template may still exist.
		c.Ready = c.Updated == c.Total && int(s.AvailableReplicas) == c.Total && int(s.Replicas) == c.Total
	}
	return c
}

func (r *Reader) daemonSet(ds *appsv1.DaemonSet) catalog.Component {
	c := r.templateComponent(catalog.DaemonSetComponent, &ds.ObjectMeta, &ds.Spec.Template)
	c.Client = ds.Name == r.names.ClientDaemonSet
	s := ds.Status
	c.Total = int(s.DesiredNumberScheduled)
	// Misscheduled pods run, but the DaemonSet controller does not count them as ready.
	c.Stopped = s.ObservedGeneration > 0 && s.ObservedGeneration >= ds.Generation && s.NumberReady == 0 && s.NumberMisscheduled == 0
	if s.ObservedGeneration >= ds.Generation {
		c.Updated = int(s.UpdatedNumberScheduled)
		c.Ready = c.Updated == c.Total && int(s.NumberAvailable) == c.Total
	}
	if containers := ds.Spec.Template.Spec.Containers; len(containers) > 0 && containers[0].LivenessProbe != nil {
		probe := containers[0].LivenessProbe
		c.Built[catalog.ProbePeriod] = strconv.Itoa(int(probe.PeriodSeconds))
		c.Built[catalog.ProbeTimeout] = strconv.Itoa(int(probe.TimeoutSeconds))
		c.Built[catalog.ProbeFailures] = strconv.Itoa(int(probe.FailureThreshold))
	}
	return c
}

// templateComponent has the traits of all templates. The API server adds no default
// priority class to a template, so the template's class is the wanted class.
func (r *Reader) templateComponent(kind catalog.ComponentKind, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) catalog.Component {
	resources := make(map[string]corev1.ResourceRequirements, len(template.Spec.Containers))
	for _, c := range template.Spec.Containers {
		resources[c.Name] = c.Resources
	}
	applied := meta.Annotations[r.names.TolerationsAnnotation]
	return catalog.Component{
		Kind: kind, Name: meta.Name, UID: string(meta.UID), Version: meta.ResourceVersion,
		OptOut:      template.Annotations[rwx.OptOutAnnotation] == "true",
		Terminating: meta.DeletionTimestamp != nil,

		OtherTolerations: otherTolerations(applied, template.Spec.Tolerations),
		Built: map[catalog.Trait]string{
			catalog.Tolerations:       builtTolerations(applied, template.Spec.Tolerations),
			catalog.NodeSelector:      catalog.NodeSelectorTrait(template.Spec.NodeSelector),
			catalog.PriorityClassName: template.Spec.PriorityClassName,
			catalog.Resources:         catalog.ResourcesTrait(resources),
		},
	}
}

// builtTolerations returns the tolerations in the storage system's annotation that
// the pod really has.
func builtTolerations(applied string, spec []corev1.Toleration) string {
	list, err := appliedTolerations(applied)
	if err != nil {
		return unreadable
	}
	return catalog.TolerationsTrait(slices.DeleteFunc(list, func(t corev1.Toleration) bool { return !hasToleration(spec, t) }))
}

// otherTolerations returns the tolerations of an installer, Kubernetes or a user.
func otherTolerations(applied string, spec []corev1.Toleration) []corev1.Toleration {
	list, _ := appliedTolerations(applied) // if the annotation can't be parsed, all tolerations count as others
	return slices.DeleteFunc(slices.Clone(spec), func(t corev1.Toleration) bool { return hasToleration(list, t) })
}

func appliedTolerations(applied string) (list []corev1.Toleration, err error) {
	if applied != "" {
		err = json.Unmarshal([]byte(applied), &list)
	}
	return list, err
}

func hasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(there corev1.Toleration) bool { return equality.Semantic.DeepEqual(operated(t), operated(there)) })
}

// operated sets the default operator.
func operated(t corev1.Toleration) corev1.Toleration {
	if t.Operator == "" {
		t.Operator = corev1.TolerationOpEqual
	}
	return t
}

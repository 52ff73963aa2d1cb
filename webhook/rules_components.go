package webhook

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/settings"
)

// buildsComponents tells whether the storage system's pods are brought in line
// with settings as they are created: only where Fairlead applies settings at all.
func (p Profile) buildsComponents() bool {
	return p.Duties.Settings == config.Apply && p.Duties.Pods == config.On
}

func (p Profile) componentPods(entry string, kind settings.ComponentKind) rule[mutators.ComponentPod] {
	return rule[mutators.ComponentPod]{
		name:  p.Name + "/" + entry,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		decide: func(ctx context.Context, r *Request[mutators.ComponentPod]) (Decision, error) {
			wants, err := p.componentWants(ctx, kind, r.Object)
			if err != nil {
				return Decision{}, err
			}
			return fromMutation(mutators.MutateComponent(*r.Object, r.Namespace, wants)), nil
		},
	}
}

// componentWants reads live what the settings ask of a new pod, and of the
// cluster only what that needs to be known for.
func (p Profile) componentWants(ctx context.Context, kind settings.ComponentKind, pod *mutators.ComponentPod) (mutators.ComponentWants, error) {
	var wants mutators.ComponentWants
	own, system, err := p.Live.Values(ctx)
	if err != nil {
		return wants, err
	}
	c := settings.Component{Kind: kind, Node: pod.Spec.NodeName}
	if kind == settings.InstanceManager {
		c.Engine = cmp.Or(pod.Metadata.Labels[p.EngineLabel], settings.EngineV1)
	}
	var nodes settings.Nodes
	// Of the node the CPUs are asked, and for a pod that is bound to it the labels.
	if c.Node != "" {
		if nodes, err = p.Live.Node(ctx, c.Node); err != nil {
			return wants, err
		}
	}
	values := settings.Resolve(own, system, p.Name)
	wants = mutators.WantsOf(values, system, c, nodes, p.Profile)
	for trait, name := range wants.By {
		// Two that build one pod each in its own way would make it anew for ever.
		if settings.Unheeded(values, system, name, p.Name) != "" {
			delete(wants.By, trait)
		}
	}
	if _, asked := wants.By[settings.PriorityClassName]; asked && wants.PriorityClass != pod.Spec.PriorityClassName {
		wants.Classes, wants.DefaultClass, err = p.Live.PriorityClasses(ctx)
	}
	return wants, err
}

// settingValues needs no facts of the cluster: the form of a value is the same everywhere.
func (p Profile) settingValues() rule[mutators.Setting] {
	return rule[mutators.Setting]{
		name:  p.Name + "/" + entrySettingValues,
		kinds: settingKinds,
		decide: func(_ context.Context, r *Request[mutators.Setting]) (Decision, error) {
			facts := mutators.OverrideFacts{User: r.UserInfo.Username, Now: time.Now()}
			return fromMutation(mutators.MutateSetting(*r.Object, r.OldObject, r.Kind.Group == v1alpha1.GroupVersion.Group, facts)), nil
		},
	}
}

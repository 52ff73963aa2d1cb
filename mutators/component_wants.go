package mutators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ComponentWants is what settings ask of one pod, and what must be known of the
// cluster to do it.
type ComponentWants struct {
	// By is the setting that asks, by trait. A trait that is not there is nobody's
	// matter, and its field here says nothing.
	By map[settings.Trait]settings.Name

	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	// AddsSelector: others may add to the node selector, a StorageClass for share managers.
	AddsSelector  bool
	PriorityClass string
	// CPU request; zero is none.
	CPU     resource.Quantity
	Network storage.Attachment

	// TolerationsAnnotation and Interface are the profile's.
	TolerationsAnnotation, Interface string
	// NodeLabels of the node that the pod is bound to; nil where it is not known.
	NodeLabels map[string]string
	// Classes in the cluster, and the one that pods get that name none.
	Classes      []string
	DefaultClass string
}

// WantsOf reads what the values in force ask of a component; system is what the
// storage system says itself. A value that nobody has set is not enforced, and one
// that is not well formed asks for nothing.
func WantsOf(values settings.Values, system map[settings.Name]string, c settings.Component, nodes settings.Nodes, p storage.Profile) ComponentWants {
	w := ComponentWants{By: map[settings.Trait]settings.Name{}, AddsSelector: c.Kind == settings.ShareManager, TolerationsAnnotation: p.TolerationsAnnotation, Interface: p.StorageInterface}
	if node, known := nodes[c.Node]; known {
		w.NodeLabels = node.Labels
		if w.NodeLabels == nil {
			w.NodeLabels = map[string]string{}
		}
	}
	// Nothing is said to be applied: a value that was taken back is asked for by
	// nobody, and the storage system builds with its own.
	for trait, want := range settings.Wanted(values, system, nil, c, nodes) {
		if values[want.Setting].Source != settings.SourceDefault && w.read(trait, want.Text) == nil {
			w.By[trait] = want.Setting
		}
	}
	return w
}

// errNotHere is returned for what the storage system builds.
type errNotHere struct{}

func (errNotHere) Error() string { return "not asked of a pod as it is created" }

func (w *ComponentWants) read(trait settings.Trait, text string) (err error) {
	switch trait {
	case settings.Tolerations:
		w.Tolerations, err = settings.ParseTolerations(text)
	case settings.NodeSelector:
		w.NodeSelector, err = settings.ParseNodeSelector(text)
	case settings.PriorityClassName:
		w.PriorityClass = text
	case settings.CPURequest:
		w.CPU, err = resource.ParseQuantity(text)
	case settings.StorageAttachment:
		w.Network, err = storage.ParseAttachment(text)
	default:
		return errNotHere{}
	}
	return err
}

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// PriorityClasses returns the sorted names of the priority classes, and the default
// class for pods without a class; "" if there is none.
func (r *Reader) PriorityClasses(ctx context.Context) (names []string, byDefault string, err error) {
	var list schedulingv1.PriorityClassList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing PriorityClasses: %w", err)
	}
	var lowest int32
	for _, class := range list.Items {
		names = append(names, class.Name)
		// Of several default classes, the API server takes the lowest (k8s.io/kubernetes plugin/pkg/admission/priority).
		if class.GlobalDefault && (byDefault == "" || class.Value < lowest) {
			byDefault, lowest = class.Name, class.Value
		}
	}
	slices.Sort(names)
	return names, byDefault, nil
}

// podClasses finds the class that a pod was created with. The API server writes the
// default class into pods without a class, so both kinds of pod look alike.
type podClasses struct {
	byDefault string
	// named: the setting in effect names the default class, so a pod with the default class matches the setting.
	named bool
}

func (r *Reader) podClasses(ctx context.Context) (podClasses, error) {
	_, byDefault, err := r.PriorityClasses(ctx)
	if err != nil || byDefault == "" {
		return podClasses{}, err
	}
	own, system, err := r.Values(ctx)
	if err != nil {
		return podClasses{}, err
	}
	inForce := catalog.Resolve(own, system, r.profile.Name)[catalog.PriorityClass].Text
	return podClasses{byDefault: byDefault, named: strings.TrimSpace(inForce) == byDefault}, nil
}

func (c podClasses) built(class string) string {
	if class == c.byDefault && !c.named {
		return ""
	}
	return class
}

package cluster

import (
	"context"
	"fmt"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// priorityClasses returns the names of the priority classes, and the default class for pods without a class; "" if there is none.
func (r *Reader) priorityClasses(ctx context.Context) (names map[string]bool, byDefault string, err error) {
	var list schedulingv1.PriorityClassList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing PriorityClasses: %w", err)
	}
	names = make(map[string]bool, len(list.Items))
	var lowest int32
	for _, class := range list.Items {
		names[class.Name] = true
		// Of several default classes, the API server takes the lowest (k8s.io/kubernetes plugin/pkg/admission/priority).
		if class.GlobalDefault && (byDefault == "" || class.Value < lowest) {
			byDefault, lowest = class.Name, class.Value
		}
	}
	return names, byDefault, nil
}

// podClasses finds the class that a pod was created with. The API server writes the
// default class into pods without a class, so both kinds of pod look alike.
type podClasses struct {
	byDefault string
	// named: the setting in effect names the default class, so a pod with the default class matches the setting.
	named bool
}

func classesFor(byDefault string, values catalog.Values) podClasses {
	return podClasses{byDefault: byDefault, named: strings.TrimSpace(values[catalog.PriorityClass].Text) == byDefault}
}

func (c podClasses) built(class string) string {
	if class == c.byDefault && !c.named {
		return ""
	}
	return class
}

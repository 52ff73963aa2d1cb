// Package restarts counts what is restarted for which settings, whichever
// controller does it.
package restarts

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter is the one of a profile, with labels setting and kind.
func Counter(registry prometheus.Registerer, profile string) (*prometheus.CounterVec, error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "fairlead_component_restarts_total",
		Help:        "Components restarted, rolled or removed, by kind and setting; one that is restarted for several settings counts for each.",
		ConstLabels: prometheus.Labels{"profile": profile},
	}, []string{"setting", "kind"})
	err := registry.Register(counter)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if other, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
			return other, nil // another controller's
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metric of restarts: %w", err)
	}
	return counter, nil
}

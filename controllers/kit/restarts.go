package kit

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// RestartCounter counts what is restarted for a profile's settings, with labels setting and kind.
// The controllers of a profile share it.
func RestartCounter(registry prometheus.Registerer, profile string) (*prometheus.CounterVec, error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "fairlead_component_restarts_total",
		Help:        "Components restarted, rolled or removed, by kind and setting; one that is restarted for several settings counts for each.",
		ConstLabels: prometheus.Labels{"profile": profile},
	}, []string{"setting", "kind"})
	err := registry.Register(counter)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if shared, ok := registered.ExistingCollector.(*prometheus.CounterVec); ok {
			return shared, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metric of restarts: %w", err)
	}
	return counter, nil
}

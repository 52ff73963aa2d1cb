package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func storageProfiles(c *config.Configuration) []storage.Profile {
	var profiles []storage.Profile
	for _, p := range c.Profiles {
		profiles = append(profiles, p.Storage())
	}
	return profiles
}

var errObjectKey = errors.New("must be <namespace>/<name>")

// objectKey parses <namespace>/<name>; "" is no object.
func objectKey(flag, value string) (client.ObjectKey, error) {
	if value == "" {
		return client.ObjectKey{}, nil
	}
	namespace, name, found := strings.Cut(value, "/")
	if !found || namespace == "" || name == "" {
		return client.ObjectKey{}, fmt.Errorf("--%s %q: %w", flag, value, errObjectKey)
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// serveHTTP serves until the context ends; an empty address or 0 serves nothing.
func serveHTTP(ctx context.Context, listen string, handler http.Handler) error {
	if listen == "0" || listen == "" {
		return nil
	}
	s := manager.Server{
		Server:          &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		ShutdownTimeout: ptr.To(time.Second),
	}
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("serving on %s: %w", listen, err)
	}
	return nil
}

// goCollector reports Go's own metrics, with the live heap: the memory in use after the last collection.
func goCollector() prometheus.Collector {
	return collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}))
}

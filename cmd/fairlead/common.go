package main

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

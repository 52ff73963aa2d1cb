// Package builtin lists the storage systems that Fairlead knows.
package builtin

import (
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// Profiles of storage systems. The configuration's default is the first.
func Profiles() []storage.Profile { return []storage.Profile{longhorn.Profile()} }

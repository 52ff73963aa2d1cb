// Package builtin lists the storage systems that Fairlead knows.
package builtin

import (
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Profiles of storage systems. The configuration's default is the first.
func Profiles() []longhorn.Names { return []longhorn.Names{longhorn.DefaultNames()} }

package beside

import (
	"io"
)

// Options of a cluster with Longhorn's manager.
type Options struct {
	// Dir holds everything that is written.
	Dir string
	// Fairlead is the binary to install, by Install.
	Fairlead string
	// Version of Longhorn; empty is the default.
	Version string
	// Duties for Longhorn, as in the configuration, in one line; empty for the defaults.
	Duties string
	// Out gets the progress, in lines.
	Out io.Writer
}

// Package ssync has the command of this name, which longhorn-engine registers and does not run.
package ssync

import "log"

func Main() { log.Fatal("ssync is not built for tests") }

// Package util stops nothing: the v2 data engine is never started.
package util

import "time"

func StopSPDKTgtDaemon(time.Duration) error { return nil }

package progress

import (
	"fmt"
	"time"
)

// Elapsed writes a duration the way people say it: 8.4s, 42s, 1m12s, 1h2m.
func Elapsed(d time.Duration) string {
	switch {
	// Just below ten seconds, rounding to tenths would give "10.0s".
	case d < 10*time.Second-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%ds", int(d.Round(time.Second).Seconds()))
	case d.Round(time.Second) < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Window is a time of the week in which restarts may begin.
type Window struct {
	// Days on which the window opens; none is every day.
	Days []time.Weekday
	// Start is the time of day at which it opens, since midnight.
	Start time.Duration
	// Length of the window, at most a week.
	Length time.Duration
	// Location of Start and Days.
	Location *time.Location
}

// Windows are the times in which restarts may begin; without any they always may.
type Windows []Window

// Closed is how long no window is open from now on, at most a week; 0 where one is.
func (w Windows) Closed(now time.Time) time.Duration {
	if len(w) == 0 {
		return 0
	}
	return slices.MinFunc(w, func(a, b Window) int { return cmp.Compare(a.closed(now), b.closed(now)) }).closed(now)
}

// closed looks at the openings of the days around now: a window that opened last
// week may still be open, and one that opens next week may be the next.
func (w Window) closed(now time.Time) time.Duration {
	local := now.In(w.Location)
	wait := 8 * 24 * time.Hour
	for day := -8; day <= 8; day++ {
		midnight := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, w.Location)
		if len(w.Days) > 0 && !slices.Contains(w.Days, midnight.Weekday()) {
			continue
		}
		// By the clock on the wall, also on the day on which the clock is changed.
		opens := time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, int(w.Start/time.Second), 0, w.Location)
		switch {
		case !opens.After(now) && now.Before(opens.Add(w.Length)):
			return 0
		case opens.After(now):
			wait = min(wait, opens.Sub(now))
		}
	}
	return wait
}

// WindowBlocker says when the next window opens.
func WindowBlocker(now time.Time, closed time.Duration) catalog.Blocker {
	return catalog.Blocker{Kind: catalog.BlockedByTime, Name: "maintenanceWindows", Message: fmt.Sprintf(
		"restarts begin in a maintenance window only; the next opens at %s", now.Add(closed).UTC().Truncate(time.Minute).Format(time.RFC3339))}
}

// sooner is the shorter of two waits, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

package beside

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// longhornRetry is Longhorn's longest period of repetition that matters here.
const longhornRetry = 30 * time.Second

// quiet is longer than that.
const quiet = longhornRetry + 10*time.Second

// TestNothingIsWrittenBackAndForth enables both settings, lets all settle, and looks at
// who writes what from then on.
func TestNothingIsWrittenBackAndForth(t *testing.T) {
	var alone time.Duration
	eachWay(t, func(s scene) {
		fairlead := one.installed
		start, began := s.mark(), time.Now()
		s.set(StorageNetwork, NetworkA)
		s.set(StorageNetworkForRWX, "true")
		s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), fairlead))
		took := time.Since(began).Round(time.Second)
		s.Logf("both settings are applied after %s", took)
		if !fairlead {
			alone = took
		} else if alone > 0 && took > alone+longhornRetry {
			s.Errorf("Longhorn alone needed %s", alone)
		}
		enabling := s.since(start, func(sandbox.Write) bool { return true })
		for _, setting := range []string{StorageNetwork, StorageNetworkForRWX} {
			values := AppliedValues(enabling, setting)
			s.Logf("status.applied of %s: %s", setting, strings.Join(values, ", "))
			if len(values) > 3 { // applied as before, not applied, applied
				s.report(fmt.Errorf("status.applied of %s was written back and forth: %s", setting, strings.Join(values, ", ")))
			}
		}
		created := s.since(start, func(w sandbox.Write) bool {
			return w.Verb == "create" && w.Resource == "pods" && strings.HasPrefix(w.Name, "instance-manager-") && w.Code < 300
		})
		if len(created) > 1 {
			s.report(fmt.Errorf("the idle instance manager was restarted %d times, once is needed: %v", len(created), created))
		}
		for _, fight := range Fights(enabling) {
			s.report(fmt.Errorf("while enabling: %s", fight))
		}
		settled := s.waitSilent()
		time.Sleep(quiet) // that nothing happens cannot be waited for otherwise
		for _, line := range Count(s.since(settled, ByFairlead)) {
			s.report(fmt.Errorf("written by Fairlead though nothing changed: %s", line))
		}
		for _, fight := range Fights(s.since(settled, func(sandbox.Write) bool { return true })) {
			s.report(fmt.Errorf("while nothing changed: %s", fight))
		}
	})
}

// waitSilent waits until Fairlead has written nothing for a while, and returns when it began.
func (s scene) waitSilent() Mark {
	s.Helper()
	const silence = 5 * time.Second
	mark, since := s.mark(), time.Now()
	s.must(eventually.Until(s.ctx, "Fairlead to be done", settleTimeout, func() error {
		if writes := s.since(mark, ByFairlead); len(writes) > 0 {
			mark, since = s.mark(), time.Now()
			return fmt.Errorf("it wrote %s", writes[len(writes)-1])
		}
		if quiet := time.Since(since); quiet < silence {
			return fmt.Errorf("silent for %s", quiet)
		}
		return nil
	}))
	return mark
}

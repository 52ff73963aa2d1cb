package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// csiControl is what the endpoints of a driver read at each call (e2e/csiaddons/endpoint).
type csiControl struct {
	Fail  map[string]string `json:"fail,omitempty"`
	Delay map[string]string `json:"delay,omitempty"`
}

// csiVerbs are what can fail: blocking, unblocking, listing what is blocked, and
// telling which clients are on a node.
var csiVerbs = []string{"fence", "unfence", "list", "clients"}

// Fail has calls of a verb (fence, unfence, list or clients) fail with a text, and
// change nothing, until Heal; those of the drivers that are named, or of all.
func (a *CSIAddons) Fail(verb, text string, drivers ...string) error {
	return a.control(drivers, verb, func(c *csiControl) { c.Fail[verb] = text })
}

// Delay has calls of a verb wait before they do anything, until Heal; long enough,
// and nobody waits for them any more.
func (a *CSIAddons) Delay(verb string, by time.Duration, drivers ...string) error {
	return a.control(drivers, verb, func(c *csiControl) { c.Delay[verb] = by.String() })
}

// Heal has all calls succeed again. Those that wait go on waiting.
func (a *CSIAddons) Heal() error {
	return a.control(nil, csiVerbs[0], func(c *csiControl) { *c = csiControl{} })
}

func (a *CSIAddons) control(drivers []string, verb string, change func(*csiControl)) error {
	if !slices.Contains(csiVerbs, verb) {
		return fmt.Errorf("%q is not one of %v", verb, csiVerbs)
	}
	all := map[string]bool{}
	for _, d := range a.drivers {
		all[d.Name] = true
	}
	if len(drivers) == 0 {
		drivers = slices.Collect(maps.Keys(all))
	}
	for _, driver := range drivers {
		if !all[driver] {
			return fmt.Errorf("there is no driver %s", driver)
		}
		if err := changeControl(a.controlFile(driver), change); err != nil {
			return err
		}
	}
	return nil
}

func (a *CSIAddons) controlFile(driver string) string {
	return filepath.Join(a.Dir, driver+".control")
}

// changeControl replaces the file at once: endpoints read it whenever they are called.
func changeControl(file string, change func(*csiControl)) error {
	c := csiControl{Fail: map[string]string{}, Delay: map[string]string{}}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	change(&c)
	if data, err = json.Marshal(c); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

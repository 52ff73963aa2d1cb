package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestLonghornsSettingsAreWrittenOnlyToHoldApplied: each write to one makes every
// longhorn-manager sync it at once. The stand-in leaves `applied` true, as Longhorn does
// while a gate is open; the volume has a cluster IP, so Fairlead holds it false meanwhile.
func TestLonghornsSettingsAreWrittenOnlyToHoldApplied(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, workloads: true, auditWrites: true})
	c.set(system, "storage-network", netA)
	c.set(system, "storage-network-for-rwx-volume-enabled", "true")
	c.waitRWXSetting("false longhorn")
	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
	c.waitRWXSetting("true longhorn")
	writes, err := c.ReadWrites()
	c.must(err)
	var got []string
	for _, w := range writes {
		if w.Group == "longhorn.io" && strings.HasPrefix(w.Resource, "settings") && w.Changed && w.Writer() == "fairlead-controller" {
			got = append(got, fmt.Sprintf("%s %s: %s", w.Resource, w.Name, applied.Find(w.Request)))
		}
	}
	const rwx = "settings/status storage-network-for-rwx-volume-enabled: "
	if want := []string{rwx + `"applied":false`, rwx + `"applied":true`}; !slices.Equal(got, want) {
		t.Errorf("written to Longhorn's settings: %q, want %q", got, want)
	}
}

// waitRWXSetting waits for applied and source of Fairlead's own setting.
func (c *cluster) waitRWXSetting(want string) {
	c.t.Helper()
	c.eventually("Fairlead's own setting is "+want, 20*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", own, "storage-network-for-rwx-volume-enabled", "-o", "jsonpath={.status.applied} {.status.source}")
		if out != want {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
}

var applied = regexp.MustCompile(`"applied":(true|false)`)

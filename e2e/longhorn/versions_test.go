package longhorn

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestVersionsCanBeBuiltAndAreDocumented(t *testing.T) {
	table, err := os.ReadFile("../../docs/install.md")
	must.Do(t, err)
	for _, v := range All {
		named, err := Named(v.Name)
		must.True(t, err == nil && named.Name == v.Name, "got %q, %v", named.Name, err)
		must.True(t, strings.Contains(string(table), "\n| "+v.Name+" |"), "docs/install.md does not say what ran of %s", v.Name)
		_, missing := os.Stat("instances/" + v.Name + ".mod")
		must.True(t, v.FromSource == (missing != nil) || v.Name == Default.Name, "%s: built from a checkout: %t, modules: %v", v.Name, v.FromSource, missing)
	}
	for _, to := range Upgrades {
		must.True(t, slices.ContainsFunc(All, func(v Version) bool { return v.Name == to && !v.FromSource }), "no upgrade to %s", to)
	}
	if _, err := Named("v0.0.1"); err == nil || !strings.Contains(err.Error(), Default.Name) {
		t.Errorf("an unknown version gives %v", err)
	}
}

func TestSidecarsHaveTheirVariables(t *testing.T) {
	must.Equal(t, v1_8_1.SidecarVariables(), []string{
		"CSI_ATTACHER_IMAGE=longhornio/csi-attacher:v4.8.0", "CSI_PROVISIONER_IMAGE=longhornio/csi-provisioner:v5.1.0-20241220",
		"CSI_RESIZER_IMAGE=longhornio/csi-resizer:v1.13.1", "CSI_SNAPSHOTTER_IMAGE=longhornio/csi-snapshotter:v8.2.0",
		"CSI_NODE_DRIVER_REGISTRAR_IMAGE=longhornio/csi-node-driver-registrar:v2.13.0", "CSI_LIVENESS_PROBE_IMAGE=longhornio/livenessprobe:v2.15.0",
	})
	must.True(t, len(v1_7_2.SidecarVariables()) == 0, "v1.7.2 knows its own images")
}

// Values of the danger zone are those that the catalog takes.
func TestZoneHasValuesOfTheCatalog(t *testing.T) {
	for _, v := range All {
		for name, values := range v.Zone {
			if name == networkSwitch {
				continue // stands for the setting of the version
			}
			d, known := catalog.Lookup(name)
			must.True(t, known && d.DangerZone, "%s: the catalog has no %s", v.Name, name)
			for _, value := range values {
				if err := d.Parse(value); err != nil {
					t.Errorf("%s: %s=%s: %v", v.Name, name, value, err)
				}
			}
		}
	}
}

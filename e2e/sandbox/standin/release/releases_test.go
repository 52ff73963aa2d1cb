package release

import (
	"os"
	"regexp"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func TestFairleadKnowsEverySettingOfTheReleases(t *testing.T) {
	installed, err := os.ReadFile("../../seed/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	system := map[catalog.Name]string{}
	for _, name := range regexp.MustCompile(`metadata: \{name: ([^,]+),`).FindAllSubmatch(installed, -1) {
		system[catalog.Name(name[1])] = ""
	}
	if len(system) != 88 {
		t.Errorf("the seed has %d settings", len(system))
	}
	for _, r := range releases() {
		for name := range r.Settings {
			system[catalog.Name(name)] = ""
		}
	}
	if unknown := catalog.Unknown(system); unknown != nil {
		t.Errorf("unknown: %q", unknown)
	}
}

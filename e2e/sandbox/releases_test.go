package sandbox

import (
	"regexp"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings"
)

func TestFairleadKnowsEverySettingOfTheReleases(t *testing.T) {
	installed, err := seeds.ReadFile("seed/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	system := map[settings.Name]string{}
	for _, name := range regexp.MustCompile(`metadata: \{name: ([^,]+),`).FindAllSubmatch(installed, -1) {
		system[settings.Name(name[1])] = ""
	}
	if len(system) != 88 {
		t.Errorf("the seed has %d settings", len(system))
	}
	for _, r := range releases() {
		for name := range r.settings {
			system[settings.Name(name)] = ""
		}
	}
	if unknown := settings.Unknown(system); unknown != nil {
		t.Errorf("unknown: %q", unknown)
	}
}

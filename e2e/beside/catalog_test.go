package beside

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestCatalogKnowsAllSettings compares the catalog with the settings that this version of Longhorn has created: Fairlead warns
// of a setting that it does not know. It takes no time of its own.
func TestCatalogKnowsAllSettings(t *testing.T) {
	s := without(t)
	var list longhorn.SettingList
	s.must(s.Client.List(s.ctx, &list, client.InNamespace(Namespace)))
	values := map[catalog.Name]string{}
	for _, setting := range list.Items {
		values[catalog.Name(setting.Name)] = setting.Value
	}
	if unknown := catalog.Unknown(values); len(unknown) > 0 {
		t.Errorf("the catalog does not know %v of Longhorn %s", unknown, s.Version.Name)
	}
	if len(list.Items) < len(s.Version.Zone) {
		t.Errorf("Longhorn %s has %d settings, and %d in the danger zone: the comparison proves nothing", s.Version.Name, len(list.Items), len(s.Version.Zone))
	}
}

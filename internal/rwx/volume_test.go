package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"reflect"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestServiceNetwork(t *testing.T) {
	for name, test := range map[string]struct {
		service Service
		want    multus.Attachment
	}{
		"headless, recorded":           {Service{ClusterIP: "None", Recorded: netB}, netB},
		"headless without a record":    {Service{ClusterIP: "None"}, netA},
		"cluster IP with a record":     {Service{ClusterIP: "10.0.0.1", Recorded: netB}, multus.Attachment{}},
		"no cluster IP, with a record": {Service{Recorded: netB}, multus.Attachment{}},
	} {
		must.Equal(t, test.service.Network(netA), test.want, "%s", name)
	}
}

func TestSortVolumesByName(t *testing.T) {
	volumes := []Volume{{Name: "c"}, {Name: "a"}, {Name: "b", Shared: true}}
	SortVolumes(volumes)
	want := []Volume{{Name: "a"}, {Name: "b", Shared: true}, {Name: "c"}}
	must.True(t, reflect.DeepEqual(volumes, want), "got %+v", volumes)
}

package storage

import (
	"reflect"
	"testing"
)

func TestServiceNetwork(t *testing.T) {
	recorded := Attachment{Network{"ns", "recorded"}, "lhnet2"}
	clients := Attachment{Network{"ns", "clients"}, "lhnet1"}
	for name, test := range map[string]struct {
		service Service
		want    Attachment
	}{
		"headless, recorded":                             {Service{ClusterIP: "None", Recorded: recorded}, recorded},
		"headless by the storage system follows clients": {Service{ClusterIP: "None"}, clients},
		"a cluster IP is the cluster network":            {Service{ClusterIP: "10.0.0.1"}, Attachment{}},
		"a cluster IP, whatever is recorded":             {Service{ClusterIP: "10.0.0.1", Recorded: recorded}, Attachment{}},
		"no cluster IP yet":                              {Service{Recorded: recorded}, Attachment{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.service.Network(clients); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSortVolumesByName(t *testing.T) {
	volumes := []Volume{{Name: "c"}, {Name: "a"}, {Name: "b", Shared: true}}
	SortVolumes(volumes)
	if want := []Volume{{Name: "a"}, {Name: "b", Shared: true}, {Name: "c"}}; !reflect.DeepEqual(volumes, want) {
		t.Fatalf("got %+v", volumes)
	}
}

func TestProfilesShareNoState(t *testing.T) {
	Longhorn().ServerLabels["longhorn.io/component"] = "changed"
	if got := Longhorn().ServerLabels["longhorn.io/component"]; got != "share-manager" {
		t.Fatalf("got %q", got)
	}
}

package catalog

import (
	"reflect"
	"testing"
)

func TestResolvePrecedence(t *testing.T) {
	const name = StorageNetworkForRWX
	for what, test := range map[string]struct {
		own, system map[Name]string
		want        Value
	}{
		"default":                               {want: Value{Text: "false", Source: SourceDefault}},
		"the storage system's over the default": {system: map[Name]string{name: "true"}, want: Value{Text: "true", Source: "longhorn"}},
		"Fairlead's over the default":           {own: map[Name]string{name: "true"}, want: Value{Text: "true", Source: SourceFairlead}},
		"both, and the same in meaning":         {own: map[Name]string{name: "1"}, system: map[Name]string{name: "true"}, want: Value{Text: "true", Source: "longhorn"}},
		"both, and not the same": {
			own: map[Name]string{name: "false"}, system: map[Name]string{name: "true"},
			want: Value{"true", "longhorn", `settings.fairlead.io storage-network-for-rwx-volume-enabled has value "false", and longhorn has this setting itself: set it in settings.longhorn.io. Take the value in settings.fairlead.io away`},
		},
		"an empty value is a value": {own: map[Name]string{name: ""}, want: Value{Text: "", Source: SourceFairlead}},
		"the storage system has the newer name": {
			own: map[Name]string{name: "true"}, system: map[Name]string{EndpointNetworkForRWX: ""},
			want: Value{"false", SourceDefault, `settings.fairlead.io storage-network-for-rwx-volume-enabled has value "true", and longhorn has endpoint-network-for-rwx-volume in its place: set that in settings.longhorn.io. Take the value in settings.fairlead.io away`},
		},
		"other names don't matter": {own: map[Name]string{EngineImageProbePeriod: "7"}, system: map[Name]string{StorageNetwork: "a/b"}, want: Value{Text: "false", Source: SourceDefault}},
	} {
		t.Run(what, func(t *testing.T) {
			if got := Resolve(test.own, test.system, "longhorn")[name]; got != test.want {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestResolveHasEverySettingAndNoOther(t *testing.T) {
	got := Resolve(map[Name]string{"unknown": "x"}, map[Name]string{"log-level": "y"}, "longhorn")
	want := Values{}
	for _, d := range All() {
		want[d.Name] = Value{Text: d.Default, Source: SourceDefault}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
}

package settings

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
		"default":                               {want: Value{"false", SourceDefault}},
		"the storage system's over the default": {system: map[Name]string{name: "true"}, want: Value{"true", "longhorn"}},
		"Fairlead's over the default":           {own: map[Name]string{name: "true"}, want: Value{"true", SourceFairlead}},
		"Fairlead's over the storage system's":  {own: map[Name]string{name: "false"}, system: map[Name]string{name: "true"}, want: Value{"false", SourceFairlead}},
		"an empty value is a value":             {own: map[Name]string{name: ""}, system: map[Name]string{name: "true"}, want: Value{"", SourceFairlead}},
		"other names don't matter":              {own: map[Name]string{StorageNetwork: "a/b"}, system: map[Name]string{EndpointNetworkForRWX: "a/b"}, want: Value{"false", SourceDefault}},
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
		want[d.Name] = Value{d.Default, SourceDefault}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
}

package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestResolvePrecedence(t *testing.T) {
	const (
		name   = StorageNetworkForRWX
		prefix = "settings.fairlead.io storage-network-for-rwx-volume-enabled has value "
		suffix = ". Clear the value in settings.fairlead.io"
	)
	value := func(v string) map[Name]string { return map[Name]string{name: v} }
	for what, test := range map[string]struct {
		own, system map[Name]string
		want        Value
	}{
		"default":                      {want: Value{Text: "false", Source: SourceDefault}},
		"storage system":               {system: value("true"), want: Value{Text: "true", Source: "longhorn"}},
		"Fairlead":                     {own: value("true"), want: Value{Text: "true", Source: SourceFairlead}},
		"empty value of Fairlead":      {own: value(""), want: Value{Text: "", Source: SourceFairlead}},
		"equal values":                 {own: value("1"), system: value("true"), want: Value{Text: "true", Source: "longhorn"}},
		"values of other settings":     {own: map[Name]string{EngineImageProbePeriod: "7"}, system: map[Name]string{StorageNetwork: "a/b"}, want: Value{Text: "false", Source: SourceDefault}},
		"conflicting values":           {value("false"), value("true"), Value{"true", "longhorn", prefix + `"false", but Longhorn has this setting itself: set it in settings.longhorn.io` + suffix}},
		"replaced in a later Longhorn": {value("true"), map[Name]string{EndpointNetworkForRWX: ""}, Value{"false", SourceDefault, prefix + `"true", but Longhorn has setting endpoint-network-for-rwx-volume instead: set endpoint-network-for-rwx-volume in settings.longhorn.io` + suffix}},
	} {
		must.Equal(t, Resolve(test.own, test.system)[name], test.want, "%s", what)
	}
}

func TestResolveHasEverySettingAndNoOther(t *testing.T) {
	want := Values{}
	for _, d := range All() {
		want[d.Name] = Value{Text: d.Default, Source: SourceDefault}
	}
	must.Equal(t, Resolve(map[Name]string{"unknown": "x"}, map[Name]string{"log-level": "y"}), want)
}

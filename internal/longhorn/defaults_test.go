package longhorn

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDefaultSettingsAreReadAsLonghornReadsThem(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                               {},
		"storage-network: kube-system/a": {"storage-network": "kube-system/a"},
		"priority-class: ' high '":       {"priority-class": "high"},
		"a: true\nb: 12\nc: \"12\"\nd: 100000000": {"a": "true", "b": "12", "c": "12", "d": "100000000"},
		"a:\nb: \"\"": {"a": "", "b": ""},
		"a: [b]":      nil,
		"a: {":        nil,
		"- a":         nil,
	} {
		got := ParseDefaultSettings(text)
		must.Check(t, (got == nil) == (want == nil), "%q: got %v", text, got)
		must.Equal(t, len(got), len(want), text)
		for name, value := range want {
			must.Equal(t, got[name], value, text)
		}
	}
}

func FuzzDefaultSettings(f *testing.F) {
	f.Add("storage-network: kube-system/a\na: true")
	f.Fuzz(func(_ *testing.T, text string) { ParseDefaultSettings(text) })
}

package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/settings"
)

func TestSetting(t *testing.T) {
	for name, test := range map[string]struct {
		setting string
		own     bool
		want    ruling
	}{
		"unknown":                  {`{"metadata":{"name":"x"},"value":" y "}`, true, ruling{Unchanged, ReasonNoSetting, "", ""}},
		"no value":                 {`{"metadata":{"name":"storage-network"}}`, true, ruling{Unchanged, ReasonNoSetting, "", ""}},
		"as it should be":          {`{"metadata":{"name":"storage-network"},"value":"a/b"}`, false, ruling{Unchanged, ReasonAsItShouldBe, "", ""}},
		"the storage system's own": {`{"metadata":{"name":"auto-delete-pod-when-volume-detached-unexpectedly"},"value":"1"}`, false, ruling{Unchanged, ReasonNoSetting, "", ""}},
		"not well formed, to refuse": {
			`{"metadata":{"name":"storage-network-for-rwx-volume-enabled"},"value":"yes"}`, false, ruling{Unchanged, ReasonMalformed, `must be "true" or "false"`, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, normalizeSetting(view[Setting](t, test.setting), test.own))
		})
	}
	got := normalizeSetting(view[Setting](t, `{"metadata":{"name":"storage-network"},"value":" a/b "}`), false)
	if got.Outcome != Mutated || got.Detail != `"a/b" instead of " a/b "` || string(encode(t, got.Patch)) != `[{"op":"replace","path":"/value","value":"a/b"}]` {
		t.Errorf("got %+v", got)
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != `stored as "a/b"` {
		t.Errorf("warnings %q", got.Warnings)
	}
}

func TestSettingPatchesAreMinimalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(settings.All()).Draw(t, "setting")
		value := rapid.SampledFrom([]string{"", " ", "1", "TRUE", " 5", "0X3", "a/b ", "b:NoSchedule;a:NoSchedule", "z:y;a:b", `{"v2": "0x3"}`, d.Default, " " + d.Default}).Draw(t, "value")
		object := map[string]any{"metadata": map[string]any{"name": string(d.Name)}, "value": value, "status": map[string]any{"applied": true}}
		checkMinimal(t, object, func(s Setting) Result { return normalizeSetting(s, true) }, []string{"value"})
	})
}

package rwx

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNewNetworkNamespaceIsRecognised(t *testing.T) {
	never, one := time.Time{}, NetworkNamespace{Identity: "one", Since: at(2), Made: at(2)}
	for name, test := range map[string]struct {
		sandbox        Sandbox // identity, pod started, sandbox made, containers started
		recorded, want NetworkNamespace
	}{
		"first seen":                                     {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{}, one},
		"first seen, condition written late":             {Sandbox{"one", at(0), at(9), at(3)}, NetworkNamespace{}, NetworkNamespace{Identity: "one", Since: at(3)}},
		"first seen, no container runs":                  {Sandbox{"one", at(0), at(2), never}, NetworkNamespace{}, one},
		"first seen, nothing known":                      {Sandbox{Identity: "one"}, NetworkNamespace{}, NetworkNamespace{Identity: "one"}},
		"first seen, old kubelet has no condition":       {Sandbox{"one", at(0), never, at(5)}, NetworkNamespace{}, NetworkNamespace{Identity: "one", Since: at(0)}},
		"unchanged":                                      {Sandbox{"one", at(0), at(2), at(5)}, one, one},
		"Longhorn bug: new sandbox":                      {Sandbox{"two", at(0), at(60), at(62)}, one, NetworkNamespace{Identity: "two", Since: at(62)}},
		"new sandbox with the same addresses":            {Sandbox{"one", at(0), at(60), at(62)}, one, NetworkNamespace{Identity: "one", Since: at(60)}},
		"new sandbox, condition unchanged":               {Sandbox{"two", at(0), at(2), at(62)}, one, NetworkNamespace{Identity: "two", Since: at(62)}},
		"all containers crashed, addresses unchanged":    {Sandbox{"one", at(0), at(2), at(62)}, one, one},
		"condition written late, then all crashed":       {Sandbox{"one", at(0), at(9), at(62)}, NetworkNamespace{Identity: "one", Since: at(3), Made: at(9)}, NetworkNamespace{Identity: "one", Since: at(3)}},
		"condition of a newer kubelet, then all crashed": {Sandbox{"one", at(0), at(60), at(62)}, NetworkNamespace{Identity: "one", Since: at(0)}, NetworkNamespace{Identity: "one", Since: at(0)}},
		"interface added to the running pod":             {Sandbox{"one.two", at(0), at(2), at(2)}, one, NetworkNamespace{Identity: "one.two", Since: at(2)}},
		"interface added, containers started later":      {Sandbox{"one.two", at(0), at(2), at(5)}, one, NetworkNamespace{Identity: "one.two", Since: at(2)}},
		"interface removed, containers started later":    {Sandbox{"two", at(0), at(2), at(5)}, NetworkNamespace{Identity: "one.two", Since: at(2)}, NetworkNamespace{Identity: "two", Since: at(2)}},
		"one of two addresses is new":                    {Sandbox{"one.two", at(0), at(2), at(5)}, NetworkNamespace{Identity: "one.three", Since: at(2)}, NetworkNamespace{Identity: "one.two", Since: at(5)}},
		"old kubelet, new sandbox":                       {Sandbox{"two", at(0), never, at(62)}, NetworkNamespace{Identity: "one", Since: at(0)}, NetworkNamespace{Identity: "two", Since: at(62)}},
		"old kubelet, sandbox recorded":                  {Sandbox{"two", at(0), never, at(62)}, NetworkNamespace{Identity: "two", Since: at(62)}, NetworkNamespace{Identity: "two", Since: at(62)}},
		"stale cache, record is newer":                   {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{Identity: "two", Since: at(60)}, NetworkNamespace{Identity: "one", Since: at(60)}},
		"a record without an identity counts as missing": {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{Identity: "", Since: at(60)}, one},
	} {
		test.want.Made = later(test.sandbox.Made, test.recorded.Made)
		got := test.sandbox.Namespace(test.recorded)
		must.True(t, got == test.want, "%s:\ngot  %+v\nwant %+v", name, got, test.want)
		again := test.sandbox.Namespace(got)
		must.Check(t, again == got, "%s: recorded: got %+v, before %+v", name, again, got)
	}
}

func TestBootOfANamespace(t *testing.T) {
	now := NetworkNamespace{Identity: "two", Since: at(60)}
	for name, test := range map[string]struct {
		boot     string
		recorded NetworkNamespace
		want     float64 // second since which the node runs, for certain
	}{
		"first seen":         {"b", NetworkNamespace{}, 60},
		"same boot":          {"b", NetworkNamespace{Identity: "one", Since: at(5), Boot: "b", Booted: at(2)}, 2},
		"rebooted":           {"c", NetworkNamespace{Identity: "one", Since: at(5), Boot: "b", Booted: at(2)}, 60},
		"boot not known":     {"", NetworkNamespace{Identity: "one", Since: at(5), Boot: "", Booted: at(2)}, 60},
		"boot not known yet": {"", NetworkNamespace{Identity: "one", Since: at(5), Boot: "b", Booted: at(2)}, 60},
	} {
		got := now.In(test.boot, test.recorded)
		must.Check(t, got.Boot == test.boot && got.Booted.Equal(at(test.want)) && got.Since.Equal(now.Since), "%s: got %+v", name, got)
	}
}

func TestNetworkNamespaceText(t *testing.T) {
	for name, test := range map[string]struct {
		namespace NetworkNamespace
		text      string
	}{
		"none":                     {NetworkNamespace{}, ""},
		"without a start":          {NetworkNamespace{Identity: "x"}, `{"identity":"x","since":"0001-01-01T00:00:00Z"}`},
		"two addresses":            {NetworkNamespace{Identity: "a.b", Since: begin, Made: begin}, `{"identity":"a.b","since":"2026-01-01T12:00:00Z","made":"2026-01-01T12:00:00Z"}`},
		"cut to the second in UTC": {NetworkNamespace{Identity: "x", Since: begin.Add(999).In(time.FixedZone("somewhere", 2*60*60))}, `{"identity":"x","since":"2026-01-01T12:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, test.namespace.String(), test.text)
			got, err := ParseNetworkNamespace(test.text)
			must.True(t, err == nil && got.Identity == test.namespace.Identity && got.Since.Equal(test.namespace.Since.Truncate(time.Second)),
				"got %+v, %v; want %+v", got, err, test.namespace)
		})
	}
	must.Equal(t, (NetworkNamespace{Since: begin}).String(), "", "without an identity")
	for _, text := range []string{
		"x", "{}", "[]", "null", `{"identity":""}`, `{"identity":1}`, `{"identity":"x","since":"yesterday"}`, `{"identity":"x"} x`, "2026-01-01T12:00:00Z/x",
	} {
		got, err := ParseNetworkNamespace(text)
		must.Check(t, errors.Is(err, errNotANamespace) && got == (NetworkNamespace{}), "%q: got %+v, %v", text, got, err)
	}
}

func TestNetworkNamespaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NetworkNamespace{
			Identity: rapid.StringMatching(`[0-9a-f]{8}(\.[0-9a-f]{8})?`).Draw(t, "identity"),
			Since:    time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC(),
			Boot:     rapid.SampledFrom([]string{"", "b"}).Draw(t, "boot"),
			Booted:   time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "booted"), 0).UTC(),
			Made:     time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "made"), 0).UTC(),
		}
		got, err := ParseNetworkNamespace(n.String())
		must.True(t, err == nil && got == n, "%s: got %+v, %v", n, got, err)
	})
}

func FuzzParseNetworkNamespace(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "x/y", `{"identity":"0123abcd","since":"2026-01-01T12:00:00Z","made":"2026-01-01T12:00:00.5Z"}`, `{"identity":"x","since":"2026-01-01T12:00:00+02:00"}`,
		`{"identity":"x","since":"0000-01-01T00:00:00+23:59"}`, `{"identity":"x","since":"9999-12-31T23:59:59-23:59"}`, "{\"identity\":\"\xff\"}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		n, err := ParseNetworkNamespace(annotation)
		if err != nil {
			must.True(t, errors.Is(err, errNotANamespace) && n == (NetworkNamespace{}), "%q: got %+v, %v", annotation, n, err)
			return
		}
		must.True(t, (n.Identity == "") == (annotation == ""), "%q: got %+v", annotation, n)
		for _, at := range []time.Time{n.Since, n.Made, n.Booted} {
			if year := at.UTC().Year(); year < 0 || year > 9999 {
				return // RFC 3339 does not go that far: a time zone has pushed it over the edge
			}
		}
		again, err := ParseNetworkNamespace(n.String())
		must.True(t, err == nil && again.Identity == n.Identity && again.Since.Equal(n.Since.Truncate(time.Second)), "%q became %q, %+v, %v", annotation, n, again, err)
	})
}

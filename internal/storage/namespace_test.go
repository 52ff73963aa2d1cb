package storage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNewNetworkNamespaceIsRecognised(t *testing.T) {
	never, one := time.Time{}, NetworkNamespace{"one", at(2)}
	for name, test := range map[string]struct {
		sandbox        Sandbox // identity, pod started, sandbox made, containers started
		recorded, want NetworkNamespace
	}{
		"first seen":                                     {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{}, one},
		"first seen, condition written late":             {Sandbox{"one", at(0), at(9), at(3)}, NetworkNamespace{}, NetworkNamespace{"one", at(3)}},
		"first seen, no container runs":                  {Sandbox{"one", at(0), at(2), never}, NetworkNamespace{}, one},
		"first seen, nothing known":                      {Sandbox{Identity: "one"}, NetworkNamespace{}, NetworkNamespace{Identity: "one"}},
		"first seen, old kubelet has no condition":       {Sandbox{"one", at(0), never, at(5)}, NetworkNamespace{}, NetworkNamespace{"one", at(0)}},
		"unchanged":                                      {Sandbox{"one", at(0), at(2), at(5)}, one, one},
		"Longhorn bug: new sandbox":                      {Sandbox{"two", at(0), at(60), at(62)}, one, NetworkNamespace{"two", at(62)}},
		"new sandbox with the same addresses":            {Sandbox{"one", at(0), at(60), at(62)}, one, NetworkNamespace{"one", at(60)}},
		"new sandbox, condition unchanged":               {Sandbox{"two", at(0), at(2), at(62)}, one, NetworkNamespace{"two", at(62)}},
		"all containers crashed, addresses unchanged":    {Sandbox{"one", at(0), at(2), at(62)}, one, one},
		"interface added to the running pod":             {Sandbox{"two", at(0), at(2), at(2)}, one, NetworkNamespace{"two", at(2)}},
		"interface added, container started later":       {Sandbox{"two", at(0), at(2), at(5)}, one, NetworkNamespace{"two", at(5)}},
		"old kubelet, new sandbox":                       {Sandbox{"two", at(0), never, at(62)}, NetworkNamespace{"one", at(0)}, NetworkNamespace{"two", at(62)}},
		"old kubelet, sandbox recorded":                  {Sandbox{"two", at(0), never, at(62)}, NetworkNamespace{"two", at(62)}, NetworkNamespace{"two", at(62)}},
		"stale cache, record is newer":                   {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{"two", at(60)}, NetworkNamespace{"one", at(60)}},
		"a record without an identity counts as missing": {Sandbox{"one", at(0), at(2), at(5)}, NetworkNamespace{"", at(60)}, one},
	} {
		got := test.sandbox.Namespace(test.recorded)
		must.True(t, got == test.want, "%s:\ngot  %+v\nwant %+v", name, got, test.want)
		again := test.sandbox.Namespace(got)
		must.Check(t, again == got, "%s: recorded: got %+v, before %+v", name, again, got)
	}
}

func TestNetworkNamespaceText(t *testing.T) {
	for name, test := range map[string]struct {
		namespace NetworkNamespace
		text      string
	}{
		"none":                     {NetworkNamespace{}, ""},
		"without a start":          {NetworkNamespace{Identity: "x"}, "0001-01-01T00:00:00Z/x"},
		"identity with a slash":    {NetworkNamespace{"a/b", begin}, "2026-01-01T12:00:00Z/a/b"},
		"cut to the second in UTC": {NetworkNamespace{"x", begin.Add(999).In(time.FixedZone("somewhere", 2*60*60))}, "2026-01-01T12:00:00Z/x"},
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
		"x", "/", "/x", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z/", "2026-01-01/x", "2026-01-01 12:00:00Z/x", " 2026-01-01T12:00:00Z/x", "yesterday/x",
	} {
		got, err := ParseNetworkNamespace(text)
		must.Check(t, errors.Is(err, ErrNotANamespace) && got == (NetworkNamespace{}), "%q: got %+v, %v", text, got, err)
	}
}

func TestNetworkNamespaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NetworkNamespace{
			Identity: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "identity"),
			Since:    time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC(),
		}
		got, err := ParseNetworkNamespace(n.String())
		must.True(t, err == nil && got == n, "%s: got %+v, %v", n, got, err)
	})
}

func FuzzParseNetworkNamespace(f *testing.F) {
	for _, seed := range []string{
		"", "/", "x/y", "2026-01-01T12:00:00Z/0123abcd", "2026-01-01T12:00:00.5Z/x", "2026-01-01T12:00:00+02:00/x",
		"0000-01-01T00:00:00Z/x", "0000-01-01T00:00:00+23:59/x", "9999-12-31T23:59:59-23:59/x", "2026-01-01T12:00:00Z/\xff", "2026-01-01T12:00:00Z//",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		n, err := ParseNetworkNamespace(annotation)
		if err != nil {
			must.True(t, errors.Is(err, ErrNotANamespace) && n == (NetworkNamespace{}), "%q: got %+v, %v", annotation, n, err)
			return
		}
		must.True(t, (n.Identity == "") == (annotation == "") && strings.HasSuffix(annotation, n.Identity), "%q: got %+v", annotation, n)
		if year := n.Since.UTC().Year(); year < 0 || year > 9999 {
			return // RFC 3339 does not go that far: a time zone has pushed it over the edge
		}
		again, err := ParseNetworkNamespace(n.String())
		must.True(t, err == nil && again.Identity == n.Identity && again.Since.Equal(n.Since.Truncate(time.Second)), "%q became %q, %+v, %v", annotation, n, again, err)
	})
}

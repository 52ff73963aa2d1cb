package storage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestANewNetworkNamespaceIsKnownAsSuch(t *testing.T) {
	for name, test := range map[string]struct {
		sandbox  Sandbox
		recorded NetworkNamespace
		want     NetworkNamespace
	}{
		"seen for the first time: since its sandbox was made": {
			sandbox: Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)},
			want:    NetworkNamespace{"one", at(2)},
		},
		"a condition that was written down late: the first container is closer": {
			sandbox: Sandbox{Identity: "one", PodStarted: at(0), Made: at(9), ContainersStarted: at(3)},
			want:    NetworkNamespace{"one", at(3)},
		},
		"no container runs yet": {
			sandbox: Sandbox{Identity: "one", PodStarted: at(0), Made: at(2)},
			want:    NetworkNamespace{"one", at(2)},
		},
		"nothing has happened since": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"one", at(2)},
		},
		"Longhorn bug: a new sandbox, as its condition says; nothing was mounted before its first container ran": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), Made: at(60), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"two", at(62)},
		},
		"a new sandbox with the addresses of before, as its condition says": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(60), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"one", at(60)},
		},
		"a new sandbox that its condition does not show: addresses and containers are new": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), Made: at(2), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"two", at(62)},
		},
		"one container crashed alone": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)}, // the others run on
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"one", at(2)},
		},
		"all containers crashed, one after the other, and the addresses are the same": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"one", at(2)},
		},
		"an interface was added to the running pod": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), Made: at(2), ContainersStarted: at(2)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"two", at(2)},
		},
		"an interface was added to a running pod whose image took a while: what it mounted, it mounted later than that": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)},
			recorded: NetworkNamespace{"one", at(2)},
			want:     NetworkNamespace{"two", at(5)},
		},
		"an old kubelet has no condition: since the pod was taken on": {
			sandbox: Sandbox{Identity: "one", PodStarted: at(0), ContainersStarted: at(5)},
			want:    NetworkNamespace{"one", at(0)},
		},
		"an old kubelet, a new sandbox": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"one", at(0)},
			want:     NetworkNamespace{"two", at(62)},
		},
		"an old kubelet, after a new sandbox": {
			sandbox:  Sandbox{Identity: "two", PodStarted: at(0), ContainersStarted: at(62)},
			recorded: NetworkNamespace{"two", at(62)},
			want:     NetworkNamespace{"two", at(62)},
		},
		"what was recorded is newer than what the cache shows": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)},
			recorded: NetworkNamespace{"two", at(60)},
			want:     NetworkNamespace{"one", at(60)},
		},
		"recorded without an identity is not recorded": {
			sandbox:  Sandbox{Identity: "one", PodStarted: at(0), Made: at(2), ContainersStarted: at(5)},
			recorded: NetworkNamespace{"", at(60)},
			want:     NetworkNamespace{"one", at(2)},
		},
		"nothing is known of it yet": {sandbox: Sandbox{Identity: "one"}, want: NetworkNamespace{Identity: "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.sandbox.Namespace(test.recorded)
			if got != test.want {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
			if again := test.sandbox.Namespace(got); again != got {
				t.Fatalf("once recorded it is %+v, before %+v", again, got)
			}
		})
	}
}

func TestNetworkNamespaceIsReadAsItWasWritten(t *testing.T) {
	for name, test := range map[string]struct {
		namespace NetworkNamespace
		text      string
	}{
		"one":               {NetworkNamespace{"0123abcd", begin}, "2026-01-01T12:00:00Z/0123abcd"},
		"none":              {NetworkNamespace{}, ""},
		"without a start":   {NetworkNamespace{Identity: "x"}, "0001-01-01T00:00:00Z/x"},
		"slashes within it": {NetworkNamespace{"a/b", begin}, "2026-01-01T12:00:00Z/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.namespace.String(); got != test.text {
				t.Fatalf("got %q, want %q", got, test.text)
			}
			got, err := ParseNetworkNamespace(test.text)
			if err != nil || got.Identity != test.namespace.Identity || !got.Since.Equal(test.namespace.Since) {
				t.Fatalf("got %+v, %v; want %+v", got, err, test.namespace)
			}
		})
	}
}

func TestANamespaceIsWrittenInOneTimeZoneAndToTheSecond(t *testing.T) {
	local := NetworkNamespace{"x", time.Date(2026, 1, 1, 14, 0, 0, 999, time.FixedZone("somewhere", 2*60*60))}
	if got, want := local.String(), "2026-01-01T12:00:00Z/x"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := (NetworkNamespace{Since: begin}).String(); got != "" {
		t.Fatalf("without an identity: got %q", got)
	}
}

func TestParseNetworkNamespaceRefuses(t *testing.T) {
	for _, text := range []string{
		"x", "/", "/x", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z/", "2026-01-01/x", "2026-01-01 12:00:00Z/x", " 2026-01-01T12:00:00Z/x", "yesterday/x",
	} {
		if got, err := ParseNetworkNamespace(text); !errors.Is(err, ErrNotANamespace) || got != (NetworkNamespace{}) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestNetworkNamespaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NetworkNamespace{
			Identity: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "identity"),
			Since:    time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC(),
		}
		if got, err := ParseNetworkNamespace(n.String()); err != nil || got != n {
			t.Fatalf("%s: got %+v, %v", n, got, err)
		}
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
			if !errors.Is(err, ErrNotANamespace) || n != (NetworkNamespace{}) {
				t.Fatalf("%q: got %+v, %v", annotation, n, err)
			}
			return
		}
		if (n.Identity == "") != (annotation == "") || !strings.HasSuffix(annotation, n.Identity) {
			t.Fatalf("%q: got %+v", annotation, n)
		}
		if year := n.Since.UTC().Year(); year < 0 || year > 9999 {
			return // RFC 3339 does not go that far: a time zone has pushed it over the edge
		}
		again, err := ParseNetworkNamespace(n.String())
		if err != nil || again.Identity != n.Identity || !again.Since.Equal(n.Since.Truncate(time.Second)) {
			t.Fatalf("%q became %q, %+v, %v", annotation, n, again, err)
		}
	})
}

package storage

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNetwork(t *testing.T) {
	storageNet := Network{"kube-system", "storage-net"}
	for name, test := range map[string]struct {
		value   string
		want    Network
		problem string
	}{
		"a network":                         {value: "kube-system/storage-net", want: storageNet},
		"a name with dots":                  {value: "ns/net.v1", want: Network{"ns", "net.v1"}},
		"empty is the cluster network":      {value: ""},
		"blank is the cluster network":      {value: " \t"},
		"Longhorn bug: space around it":     {value: " kube-system/storage-net ", want: storageNet},
		"Longhorn bug: no name":             {value: "ns/", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`},
		"Longhorn bug: no namespace":        {value: "/nad", problem: `must be <namespace>/<NetworkAttachmentDefinition>: namespace "" is not a DNS label`},
		"Longhorn bug: letters of no DNS":   {value: "A B/C!", problem: `must be <namespace>/<NetworkAttachmentDefinition>: namespace "A B" is not a DNS label`},
		"Longhorn bug: breaks out of JSON":  {value: `ns/x"y`, problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "x\"y" is not a DNS name`},
		"no slash":                          {value: "kube-system", problem: "must be <namespace>/<NetworkAttachmentDefinition>"},
		"only a slash":                      {value: "/", problem: `must be <namespace>/<NetworkAttachmentDefinition>: namespace "" is not a DNS label`},
		"two slashes":                       {value: "a/b/c", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "b/c" is not a DNS name`},
		"space within":                      {value: "ns/ nad", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name " nad" is not a DNS name`},
		"upper case":                        {value: "ns/Nad", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "Nad" is not a DNS name`},
		"a namespace with dots":             {value: "a.b/nad", problem: `must be <namespace>/<NetworkAttachmentDefinition>: namespace "a.b" is not a DNS label`},
		"an interface belongs elsewhere":    {value: "ns/nad@lhnet1", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "nad@lhnet1" is not a DNS name`},
		"two networks":                      {value: "ns/a,ns/b", problem: `must be <namespace>/<NetworkAttachmentDefinition>: name "a,ns/b" is not a DNS name`},
		"a namespace longer than DNS takes": {value: strings.Repeat("a", 64) + "/nad", problem: `must be <namespace>/<NetworkAttachmentDefinition>: namespace "` + strings.Repeat("a", 64) + `" is not a DNS label`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseNetwork(test.value)
			if test.problem != "" {
				if !errors.Is(err, ErrNotANetwork) || err.Error() != test.problem {
					t.Fatalf("got %v, want %s", err, test.problem)
				}
				return
			}
			if err != nil || got != test.want {
				t.Fatalf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestTheClusterNetworkIsWrittenEmpty(t *testing.T) {
	if got := (Network{}).String(); got != "" {
		t.Errorf("network: got %q", got)
	}
	if got := (Attachment{Interface: "lhnet1"}).String(); got != "" {
		t.Errorf("attachment: got %q", got)
	}
}

func TestParseAttachmentRefuses(t *testing.T) {
	for _, value := range []string{
		"ns/nad", "ns/nad@", "@lhnet1", "ns@lhnet1", "/@lhnet1", "ns/nad@a/b", "ns/nad@a b", "ns/nad@a:b", "ns/nad@a@b",
		"ns/nad@a,b", `ns/nad@a"b`, "ns/nad@sixteen-is-a-lot", "Ns/nad@lhnet1", " ",
	} {
		if got, err := ParseAttachment(value); !errors.Is(err, ErrNotAnAttachment) {
			t.Errorf("%q: got %+v, %v", value, got, err)
		}
	}
}

// What is recorded on a Service is written into networks annotations: it must
// not turn the short form into JSON, nor JSON into something else.
func TestParseAttachmentRefusesInterfacesThatBreakAnnotations(t *testing.T) {
	for _, iface := range []string{"a[b", "a{b", "a\vb", "a\rb", "a\x01b", "\xbd", ".", ".."} {
		if got, err := ParseAttachment("ns/nad@" + iface); !errors.Is(err, ErrNotAnAttachment) {
			t.Errorf("%q: got %+v, %v", iface, got, err)
		}
	}
}

func TestAttachmentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAttachment(t)
		if rapid.Bool().Draw(t, "none") {
			a = Attachment{}
		}
		got, err := ParseAttachment(a.String())
		if err != nil || got != a {
			t.Fatalf("%q: got %+v, %v; want %+v", a, got, err, a)
		}
	})
}

// genAttachment draws an attachment such as settings and Services name.
func genAttachment(t *rapid.T) Attachment {
	return Attachment{
		Network{genLabel.Draw(t, "namespace"), rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?(\.[a-z0-9]{1,3})?`).Draw(t, "name")},
		rapid.StringMatching(`[a-z][a-z0-9.-]{0,14}`).Draw(t, "interface"),
	}
}

var genLabel = rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?`)

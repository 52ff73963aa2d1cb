package multus

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseNetwork(t *testing.T) {
	long := strings.Repeat("a", 64)
	noNamespace := func(text string) string { return ": namespace " + text + " is not a DNS label" }
	noName := func(text string) string { return ": name " + text + " is not a DNS name" }
	for name, test := range map[string]struct {
		value   string
		want    Network
		problem string // after the form
	}{
		"a name with dots":                   {"ns/net.v1", Network{"ns", "net.v1"}, ""},
		"empty is the cluster network":       {"", Network{}, ""},
		"blank is the cluster network":       {" \t", Network{}, ""},
		"Longhorn bug: space around":         {" kube-system/storage-net ", Network{"kube-system", "storage-net"}, ""},
		"Longhorn bug: no name":              {"ns/", Network{}, noName(`""`)},
		"Longhorn bug: no namespace":         {"/nad", Network{}, noNamespace(`""`)},
		"Longhorn bug: letters of no DNS":    {"A B/C!", Network{}, noNamespace(`"A B"`)},
		"Longhorn bug: breaks out of JSON":   {`ns/x"y`, Network{}, noName(`"x\"y"`)},
		"no slash":                           {"kube-system", Network{}, ""},
		"two slashes":                        {"a/b/c", Network{}, noName(`"b/c"`)},
		"space within":                       {"ns/ nad", Network{}, noName(`" nad"`)},
		"upper case":                         {"ns/Nad", Network{}, noName(`"Nad"`)},
		"a namespace with dots":              {"a.b/nad", Network{}, noNamespace(`"a.b"`)},
		"with an interface":                  {"ns/nad@lhnet1", Network{}, noName(`"nad@lhnet1"`)},
		"two networks":                       {"ns/a,ns/b", Network{}, noName(`"a,ns/b"`)},
		"a namespace longer than DNS allows": {long + "/nad", Network{}, noNamespace(`"` + long + `"`)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseNetwork(test.value)
			want := ErrNotANetwork.Error() + test.problem
			if test.want != (Network{}) || strings.TrimSpace(test.value) == "" {
				want = ""
			}
			must.True(t, got == test.want && text(err) == want && errors.Is(err, ErrNotANetwork) == (want != ""), "got %+v, %v; want %+v, %s", got, err, test.want, want)
		})
	}
}

// The network that a Service records is written into networks annotations: it must
// not turn the short form into JSON, nor break JSON.
func TestParseAttachmentRefuses(t *testing.T) {
	for _, value := range []string{
		"ns/nad", "ns/nad@", "@lhnet1", "ns@lhnet1", "/@lhnet1", "ns/nad@a/b", "ns/nad@a b", "ns/nad@a:b", "ns/nad@a@b", "ns/nad@a,b", `ns/nad@a"b`, "ns/nad@sixteen-is-a-lot", "Ns/nad@lhnet1", " ",
		"ns/nad@a[b", "ns/nad@a{b", "ns/nad@a\vb", "ns/nad@a\rb", "ns/nad@a\x01b", "ns/nad@\xbd", "ns/nad@.", "ns/nad@..",
	} {
		got, err := ParseAttachment(value)
		must.Check(t, errors.Is(err, errNotAnAttachment), "%q: got %+v, %v", value, got, err)
	}
	must.Equal(t, (Attachment{Interface: "lhnet1"}).String(), "", "the cluster network is written")
}

func TestAttachmentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genAttachment(t)
		if rapid.Bool().Draw(t, "none") {
			a = Attachment{}
		}
		got, err := ParseAttachment(a.String())
		must.True(t, err == nil && got == a, "%q: got %+v, %v; want %+v", a, got, err, a)
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

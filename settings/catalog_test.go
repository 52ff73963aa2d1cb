package settings

import (
	"testing"

	"github.com/fairlead-io/fairlead/storage"
)

func TestSettingValues(t *testing.T) {
	const notANetwork = "must be <namespace>/<NetworkAttachmentDefinition>"
	for _, test := range []struct {
		name    Name
		value   string
		problem string
	}{
		{StorageNetwork, "kube-system/storage-net", ""},
		{StorageNetwork, "", ""},
		{StorageNetwork, "kube-system", notANetwork},
		{StorageNetwork, "ns/", notANetwork + `: name "" is not a DNS name`},
		{EndpointNetworkForRWX, "kube-system/storage-net", ""},
		{EndpointNetworkForRWX, "", ""},
		{EndpointNetworkForRWX, "/nad", notANetwork + `: namespace "" is not a DNS label`},
		{StorageNetworkForRWX, "true", ""},
		{StorageNetworkForRWX, "false", ""},
		{StorageNetworkForRWX, "", `must be "true" or "false"`},
		{StorageNetworkForRWX, "True", ""},
		{StorageNetworkForRWX, "1", ""},
		{StorageNetworkForRWX, "yes", `must be "true" or "false"`},
		{StorageNetworkForRWX, "kube-system/storage-net", `must be "true" or "false"`},
	} {
		d, known := Lookup(string(test.name))
		if !known {
			t.Fatalf("%s is unknown", test.name)
		}
		if got := errorText(d.Parse(test.value)); got != test.problem {
			t.Errorf("%s %q: got %q, want %q", test.name, test.value, got, test.problem)
		}
	}
}

func TestEverySettingIsDefinedInFull(t *testing.T) {
	seen := map[Name]bool{}
	for _, d := range All() {
		if seen[d.Name] {
			t.Errorf("%s is defined twice", d.Name)
		}
		seen[d.Name] = true
		if d.Affects == "" || d.Since == "" || d.Normalize == nil || d.Gate == "" {
			t.Errorf("%s: incomplete: %+v", d.Name, d)
		} else if err := d.Parse(d.Default); err != nil {
			t.Errorf("%s: its default %q: %v", d.Name, d.Default, err)
		}
	}
}

func TestLookupKnowsNamesToTheLetter(t *testing.T) {
	for _, name := range []string{"", "Storage-Network", "storage-network ", "priority-class-of-nobody"} {
		if d, known := Lookup(name); known {
			t.Errorf("%q: got %s", name, d.Name)
		}
	}
}

func FuzzSettingValues(f *testing.F) {
	for _, seed := range []string{"", "true", "false", " true ", "ns/nad", " ns/nad ", "ns/", "/nad", "A B/C!", `ns/x"y`, "a/b/c", "\x00", "ns/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, d := range All() {
			err := d.Parse(value)
			if !d.NamesNetwork || err != nil {
				continue
			}
			network, err := storage.ParseNetwork(value)
			if err != nil {
				t.Fatalf("%s accepts %q, which is no network: %v", d.Name, value, err)
			}
			again, err := storage.ParseNetwork(network.String())
			if err != nil || again != network {
				t.Fatalf("%q became %q, %v", network, again, err)
			}
			a := storage.Attachment{Network: network, Interface: storage.Longhorn().StorageInterface}
			if network.IsZero() {
				a = storage.Attachment{}
			}
			annotation, err := storage.AddNetwork("", "pod-ns", a)
			if err != nil {
				t.Fatalf("%q: %v", value, err)
			}
			asked, err := storage.ManagedAttachment(annotation, "pod-ns", storage.Longhorn().Interfaces())
			if err != nil || asked != a {
				t.Fatalf("%q: a pod would ask for %q, %v", value, asked, err)
			}
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

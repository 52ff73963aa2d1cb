package ceph

import (
	"os"
	"strings"
	"testing"
)

// The page has the capabilities that the tests use.
func TestDocumentedCapabilitiesAreTested(t *testing.T) {
	data, err := os.ReadFile("../../docs/fencing-setup.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(data), " \\\n", " ")), " ")
	quoted := func(caps []string) string {
		var words []string
		for i := 0; i < len(caps); i += 2 {
			words = append(words, caps[i]+" '"+caps[i+1]+"'")
		}
		return strings.Join(words, " ")
	}
	for _, words := range []string{
		"ceph auth get-or-create client." + ClientsUser + " " + quoted(ClientsCaps) + " >",
		"For CephFS, add a line `" + quoted(CephFSCaps) + " \\` before the last",
	} {
		if !strings.Contains(page, words) {
			t.Errorf("the page has no %q", words)
		}
	}
}

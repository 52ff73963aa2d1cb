package docs

import (
	"os"
	"strings"
	"testing"
)

func TestPagesShowRealOutput(t *testing.T) {
	for page, files := range map[string][]string{
		"settings.md": {"plan/testdata/plan-attached.txt", "settings/testdata/settings-one.txt"},
		"fencing.md":  {"fences/testdata/drill-unfenceable.txt"},
	} {
		text := doc(t, page)
		for _, name := range files {
			output, err := os.ReadFile("../internal/cli/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, string(output)) {
				t.Errorf("docs/%s does not show %s:\n%s", page, name, output)
			}
		}
	}
}

// On call, one page is read.
func TestRunbookOfFencingIsOnePage(t *testing.T) {
	const most = 600
	if words := len(strings.Fields(doc(t, "fencing.md"))); words > most {
		t.Errorf("docs/fencing.md has %d words, more than %d: move some to the pages that it links", words, most)
	}
}

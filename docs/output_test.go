package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestPagesShowRealOutput(t *testing.T) {
	for page, files := range map[string][]string{
		"settings.md": {"settings/testdata/settings-one.txt"},
	} {
		text := doc(t, page)
		for _, name := range files {
			output, err := os.ReadFile("../cli/" + name)
			must.Do(t, err)
			must.Check(t, strings.Contains(text, string(output)), "docs/%s does not show %s:\n%s", page, name, output)
		}
	}
}

// On call, one page is read; below are the answers to reasons.
func TestRunbookOfFencingIsOnePage(t *testing.T) {
	const most = 600
	runbook, _, found := strings.Cut(doc(t, "fencing.md"), "\n## By hand\n")
	if words := len(strings.Fields(runbook)); !found || words > most {
		t.Errorf("the runbook of docs/fencing.md has %d words, more than %d", words, most)
	}
}

package main

import (
	"os"
	"strings"
	"testing"
)

// Whoever is on call reads one page.
func TestRunbookOfFencingIsOnePage(t *testing.T) {
	const most = 600
	page, err := os.ReadFile("../../docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(page))); words > most {
		t.Errorf("docs/fencing.md has %d words, more than %d: move some to the pages that it links", words, most)
	}
	output, err := os.ReadFile("testdata/drill-unfenceable.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(output)) {
		t.Errorf("docs/fencing.md does not show\n%s", output)
	}
}

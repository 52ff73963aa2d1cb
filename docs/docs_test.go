// Package docs holds the documentation. Its tests hold the pages together.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/metricnames"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	longestCell      = 25  // words
	architectureSize = 900 // words, with layout and code map
)

var (
	linkPattern    = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	anchorPattern  = regexp.MustCompile(`<a id="([^"]+)"`)
	fencePattern   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	symbolPattern  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	testPattern    = regexp.MustCompile(`(?:^|[^.\w])(Test[A-Z][A-Za-z0-9]+)\b`)
	decisionName   = regexp.MustCompile(`^\d{4}-[a-z0-9-]+\.md$`)
)

// page is a Markdown file, by its path from the root of the repository.
type page struct {
	path  string
	text  string
	prose string // without code blocks
}

func readPages(t *testing.T) map[string]page {
	t.Helper()
	pages := map[string]page{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		pages[path] = page{path, string(data), fencePattern.ReplaceAllString(string(data), "")}
		return nil
	})
	must.Do(t, err)
	must.True(t, len(pages) >= 20, "only %d pages were found", len(pages))
	return pages
}

// anchors are the fragments that GitHub gives to headings, and those that the page names.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, heading := range headingPattern.FindAllStringSubmatch(p.prose, -1) {
		text := linkPattern.ReplaceAllString(heading[1], "$1")
		text = symbolPattern.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	for _, anchor := range anchorPattern.FindAllStringSubmatch(p.prose, -1) {
		found[anchor[1]] = true
	}
	return found
}

// links are relative targets: a path from the root of the repository, and a fragment.
func (p page) links() [][2]string {
	var links [][2]string
	for _, link := range linkPattern.FindAllStringSubmatch(p.prose, -1) {
		if strings.Contains(link[2], "://") || strings.HasPrefix(link[2], "mailto:") {
			continue
		}
		path, fragment, _ := strings.Cut(link[2], "#")
		switch {
		case path == "":
			path = p.path
		case strings.HasPrefix(path, "/"):
			path = strings.TrimPrefix(path, "/")
		default:
			path = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), path))
		}
		links = append(links, [2]string{path, fragment})
	}
	return links
}

func TestRelativeLinksLeadSomewhere(t *testing.T) {
	pages := readPages(t)
	for _, p := range pages {
		for _, link := range p.links() {
			if _, err := os.Stat(filepath.Join("..", link[0])); err != nil {
				t.Errorf("%s: no file %s", p.path, link[0])
				continue
			}
			if target, ok := pages[link[0]]; ok && link[1] != "" && !target.anchors()[link[1]] {
				t.Errorf("%s: %s has no heading #%s", p.path, link[0], link[1])
			}
		}
	}
}

func TestEveryPageIsReachableFromTheIndex(t *testing.T) {
	pages := readPages(t)
	reached := map[string]bool{}
	for queue := []string{"docs/README.md"}; len(queue) > 0; queue = queue[1:] {
		if reached[queue[0]] {
			continue
		}
		reached[queue[0]] = true
		for _, link := range pages[queue[0]].links() {
			if strings.HasPrefix(link[0], "docs/") && filepath.Ext(link[0]) == ".md" {
				queue = append(queue, link[0])
			}
		}
	}
	for path := range pages {
		if strings.HasPrefix(path, "docs/") && !reached[path] {
			t.Errorf("docs/README.md does not lead to %s", path)
		}
	}
}

func TestMetricsInPagesExist(t *testing.T) {
	served, found := metricnames.Read(t, ".."), 0
	for _, p := range readPages(t) {
		found += served.Check(t, p.path, p.text)
	}
	must.Check(t, found >= 40, "only %d metrics were found in the pages", found)
}

// A test that a page or the Makefile names can be found and run.
func TestNamedTestsExist(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		code.Write(data)
		return err
	})
	must.Do(t, err)
	named := 0
	pages := readPages(t)
	for _, name := range []string{"Makefile", "e2e/Makefile"} {
		makefile, err := os.ReadFile("../" + name)
		must.Do(t, err)
		pages[name] = page{path: name, text: string(makefile)}
	}
	for _, p := range pages {
		for _, name := range testPattern.FindAllStringSubmatch(p.text, -1) {
			named++
			must.Check(t, strings.Contains(code.String(), "\nfunc "+name[1]), "%s: there is no test %s", p.path, name[1])
		}
	}
	must.Check(t, named >= 20, "only %d tests are named", named)
}

func TestTableCellsAreShort(t *testing.T) {
	for _, p := range readPages(t) {
		for _, line := range strings.Split(p.prose, "\n") {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, cell := range strings.Split(strings.ReplaceAll(line, `\|`, ""), "|") {
				if words := len(strings.Fields(linkPattern.ReplaceAllString(cell, "$1"))); words > longestCell {
					t.Errorf("%s: a table cell has %d words, more than %d; make it a list or a section:\n%s", p.path, words, longestCell, strings.TrimSpace(cell))
				}
			}
		}
	}
}

func TestArchitectureFitsOnePage(t *testing.T) {
	if words := len(strings.Fields(readPages(t)["docs/architecture.md"].text)); words == 0 || words > architectureSize {
		t.Errorf("docs/architecture.md has %d words, more than %d: move some to docs/reference", words, architectureSize)
	}
}

func TestCodeMapHasNoEmptyCell(t *testing.T) {
	for _, line := range strings.Split(readPages(t)["docs/architecture.md"].prose, "\n") {
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			if strings.HasPrefix(line, "|") && strings.TrimSpace(cell) == "" {
				t.Errorf("docs/architecture.md: an empty cell in %s", line)
			}
		}
	}
}

func TestLayoutNamesEveryFolder(t *testing.T) {
	layout := fencePattern.FindAllString(readPages(t)["docs/architecture.md"].text, -1)
	for _, folder := range []string{"..", "../internal"} {
		entries, err := os.ReadDir(folder)
		must.Do(t, err)
		for _, entry := range entries {
			source, err := filepath.Glob(filepath.Join(folder, entry.Name(), "*"))
			must.Do(t, err)
			if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "dist" || len(source) == 0 {
				continue
			}
			if !strings.Contains(strings.Join(layout, ""), "\n"+strings.Repeat("  ", strings.Count(folder, "/"))+entry.Name()+"/") {
				t.Errorf("docs/architecture.md: the layout lacks %s", filepath.Join(folder, entry.Name()))
			}
		}
	}
}

func TestDecisionsAreNumberedAndIndexed(t *testing.T) {
	index, err := os.ReadFile("decisions/README.md")
	must.Do(t, err)
	entries, err := os.ReadDir("decisions")
	must.Do(t, err)
	numbers := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if name == "README.md" {
			continue
		}
		if !decisionName.MatchString(name) {
			t.Errorf("%s: the name of a decision begins with four digits", name)
			continue
		}
		if other, ok := numbers[name[:4]]; ok {
			t.Errorf("%s and %s have the same number", other, name)
		}
		numbers[name[:4]] = name
		must.Check(t, strings.Contains(string(index), "("+name+")"), "decisions/README.md does not list %s", name)
	}
	must.Check(t, len(numbers) >= 10, "only %d decisions were found", len(numbers))
}

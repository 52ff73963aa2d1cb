package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// workflow is the part of a GitHub workflow that runs commands.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			Uses string `json:"uses"`
			Run  string `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

// calls are of make: by a script, and in the text of a page.
var (
	scriptCall = regexp.MustCompile(`^\s*(?:sudo \S+ )?make (.*)$`)
	textCall   = regexp.MustCompile("(?m)(?:^|`)(?:\\$ )?(?:[A-Z0-9_]+=\\S+ )*make ((?:-C e2e )?[a-z0-9-]+)")
)

// readTargets of the Makefiles, by what follows make: "test-e2e", "-C e2e test-e2e".
func readTargets(t *testing.T) map[string]bool {
	t.Helper()
	target, targets := regexp.MustCompile(`(?m)^([a-z0-9-]+(?: [a-z0-9-]+)*):`), map[string]bool{}
	for file, flag := range map[string]string{"../Makefile": "", "../common.mk": "", "../e2e/Makefile": inTestBed} {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			for _, name := range strings.Fields(m[1]) {
				targets[flag+name] = true
			}
		}
	}
	targets[inTestBed+"help"] = true // of common.mk
	return targets
}

// inTestBed is the flag for the targets of the test bed.
const inTestBed = "-C e2e "

// Pages name targets, which may be renamed.
func TestPagesNameTargetsThatExist(t *testing.T) {
	targets, found := readTargets(t), 0
	for _, p := range readPages(t) {
		for _, call := range textCall.FindAllStringSubmatch(p.text, -1) {
			found++
			must.Check(t, targets[call[1]], "%s: there is no target of make %s", p.path, call[1])
		}
	}
	must.Check(t, found >= 40, "only %d calls of make were found", found)
}

// TestScriptsNameTargetsThatExist: workflows and .ci/run call make, whose targets may be renamed.
func TestScriptsNameTargetsThatExist(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflow: %v", err)
	}
	lines := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				lines[file] = append(lines[file], strings.Split(step.Run, "\n")...)
			}
		}
	}
	for _, file := range []string{"../.ci/run", "../.ci/long"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[file] = strings.Split(string(text), "\n")
	}
	expression := regexp.MustCompile(`\$\{\{[^}]*\}\}`)
	targets := readTargets(t)
	found := 0
	for file, commands := range lines {
		for _, command := range commands {
			m := scriptCall.FindStringSubmatch(expression.ReplaceAllString(command, "x"))
			if m == nil {
				continue
			}
			found++
			words, bed := strings.CutPrefix(m[1], inTestBed)
			flag := ""
			if bed {
				flag = inTestBed
			}
			for _, word := range strings.Fields(words) {
				if !targets[flag+word] && !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "$") {
					t.Errorf("%s: %q: there is no target of make %s", file, command, flag+word)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("found %d calls of make", found)
	}
}

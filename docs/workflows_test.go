package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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

// TestScriptsNameTargetsThatExist: workflows and .ci/run call make, whose targets may be renamed.
func TestScriptsNameTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
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
	call, target := regexp.MustCompile(`^\s*(?:sudo \S+ )?make (.*)$`), regexp.MustCompile(`(?m)^([a-z0-9-]+(?: [a-z0-9-]+)*):`)
	expression := regexp.MustCompile(`\$\{\{[^}]*\}\}`)
	targets := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		for _, name := range strings.Fields(m[1]) {
			targets[name] = true
		}
	}
	found := 0
	for file, commands := range lines {
		for _, command := range commands {
			m := call.FindStringSubmatch(expression.ReplaceAllString(command, "x"))
			if m == nil {
				continue
			}
			found++
			for _, word := range strings.Fields(m[1]) {
				if !targets[word] && !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "$") {
					t.Errorf("%s: %q: the Makefile has no target %s", file, command, word)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("found %d calls of make", found)
	}
}

package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddonKeyFollowsWhatIsBuilt(t *testing.T) {
	source := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := addon{name: "x", module: "example.com/x", sources: []string{"go.mod", "*.go"}}
	key := func() string {
		t.Helper()
		version, key, err := a.key(source, "go1.26.0")
		if err != nil || version != "v1.2.3" || !strings.HasPrefix(key, "v1.2.3-go1.26.0-") {
			t.Fatalf("got version %q, key %q, error %v", version, key, err)
		}
		return key
	}
	write("go.mod", "module y\n\nrequire example.com/x v1.2.3\n")
	write("main.go", "package main\n")
	first := key()
	write("main_test.go", "package main\n")
	if key() != first {
		t.Error("a test file changes the key")
	}
	write("main.go", "package main // changed\n")
	second := key()
	a.recipe = "another"
	if second == first || key() == second {
		t.Error("sources or recipe do not change the key")
	}
	a.module = "example.com/z"
	if _, _, err := a.key(source, "go1.26.0"); err == nil {
		t.Error("a go.mod without the module has a key")
	}
}

func TestAddonsHaveTheirSources(t *testing.T) {
	source, err := moduleSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addons {
		if _, _, err := a.key(filepath.Join(filepath.Dir(source), a.name), "go1.26.0"); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

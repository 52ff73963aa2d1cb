package binaries

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

func TestAddonKeyFollowsWhatIsBuilt(t *testing.T) {
	source := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := set{name: "x", module: "example.com/x", sources: []string{"go.mod", "*.go"}}
	key := func() string {
		t.Helper()
		b := building{source: source, goMod: "go.mod"}
		version, missing := a.pinned(b)
		b.version = version
		key, err := a.key(b, "go1.26.0")
		if err = errors.Join(missing, err); err != nil || version != "v1.2.3" || !strings.HasPrefix(key, "v1.2.3-go1.26.0-") {
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
	if version, err := a.pinned(building{source: source, goMod: "go.mod"}); err == nil {
		t.Errorf("a go.mod without the module has version %q", version)
	}
}

func TestAddonsHaveTheirSources(t *testing.T) {
	source, err := moduleSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addons {
		b := building{source: filepath.Join(filepath.Dir(source), cmp.Or(a.folder, a.name)), goMod: "go.mod"}
		if _, err := a.pinned(b); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

func TestCacheFollowsEnvironment(t *testing.T) {
	for name, c := range map[string]struct{ cache, xdg, want string }{
		"FAIRLEAD_CACHE first":       {"/c", "/x", "/c"},
		"XDG_CACHE_HOME next":        {"", "/x", "/x/fairlead"},
		"home otherwise":             {"", "", "/h/.cache/fairlead"},
		"a relative XDG is no place": {"", "x", "/h/.cache/fairlead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAIRLEAD_CACHE", c.cache)
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			t.Setenv("HOME", "/h")
			if got, err := base(); err != nil || got != c.want {
				t.Errorf("cache is in %s, %v; want %s", got, err, c.want)
			}
		})
	}
	if name := folderName("v1", "go1.26.1 X:some:experiment", "abc"); strings.ContainsAny(name, " :/") {
		t.Errorf("%q is no good file name", name)
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, func() { waits++ }); !errors.Is(err, context.DeadlineExceeded) || waits != 1 {
		t.Errorf("waiting gives %v after %d notices, want a deadline and one notice", err, waits)
	}
	unlock()
	again, err := lock(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestOnlyMissingPartsAreBuilt(t *testing.T) {
	t.Setenv("FAIRLEAD_CACHE", t.TempDir())
	var ran []string
	failed := errors.New("no")
	part := func(name string, err *error) step {
		return step{name, []string{filepath.Join("bin", name)}, func(_ context.Context, b building) error {
			ran = append(ran, name)
			return errors.Join(*err, os.MkdirAll(filepath.Join(b.into, "bin"), 0o755), os.WriteFile(filepath.Join(b.into, "bin", name), nil, 0o755))
		}}
	}
	var none, last error
	last = failed
	s := set{name: "x", steps: []step{part("a", &none), part("b", &last)}}
	ensure := func() (string, error) {
		return s.ensure(t.Context(), building{source: ".", version: "v1"}, "key", progress.New(io.Discard, time.Hour))
	}
	if _, err := ensure(); !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	last = nil
	folder, err := ensure()
	if err != nil || strings.Join(ran, " ") != "a b b" {
		t.Fatalf("ran %v, %v", ran, err)
	}
	if _, err := ensure(); err != nil || len(ran) != 3 {
		t.Errorf("a complete folder runs %v, %v", ran, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".building-*")); err != nil || left != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}

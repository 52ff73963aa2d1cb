package cachedir

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCacheDirectoryFollowsEnvironment(t *testing.T) {
	for name, c := range map[string]struct{ cache, xdg, want string }{
		"FAIRLEAD_CACHE first":       {"/c", "/x", "/c/controlplane"},
		"XDG_CACHE_HOME next":        {"", "/x", "/x/fairlead/controlplane"},
		"home otherwise":             {"", "", "/h/.cache/fairlead/controlplane"},
		"a relative XDG is no place": {"", "x", "/h/.cache/fairlead/controlplane"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAIRLEAD_CACHE", c.cache)
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			t.Setenv("HOME", "/h")
			cache, err := Open("go1.26.0")
			if err != nil {
				t.Fatal(err)
			}
			if got := filepath.Dir(cache.Root); got != c.want {
				t.Errorf("cache is in %s, want %s", got, c.want)
			}
		})
	}
}

func TestKeyDependsOnGoVersion(t *testing.T) {
	one, err := Key("go1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Key("go1.26.1 X:some:experiment")
	if err != nil {
		t.Fatal(err)
	}
	if one == other {
		t.Errorf("both keys are %s", one)
	}
	if strings.ContainsAny(other, " :/") {
		t.Errorf("key %q is no good file name", other)
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock gives %v, want %v", err, ErrLocked)
	}

	waits := 0
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path, func() { waits++ }); !errors.Is(err, context.DeadlineExceeded) || waits != 1 {
		t.Errorf("waiting gives %v after %d notices, want a deadline and one notice", err, waits)
	}

	unlock()
	again, err := Lock(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	again()
}

package binaries

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// program writes a script that prints a version when asked in the right way.
func program(t *testing.T, folder, name, prints string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] || exit 1\necho '%s'\n", prints)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func apiServer() Component {
	return Component{Name: APIServer, Version: "v1.36.3", VersionArgs: []string{"--version"}, Minors: []Minor{{1, 36}}}
}

func TestFirstProgramOfSameMinorVersionIsUsed(t *testing.T) {
	older, same, later := t.TempDir(), t.TempDir(), t.TempDir()
	program(t, older, APIServer, "Kubernetes v1.35.9")
	want := program(t, same, APIServer, "Kubernetes v1.36.1")
	program(t, later, APIServer, "Kubernetes v1.36.2")

	got, found := locate(t.Context(), apiServer(), []string{"", ".", "/no/such/folder", older, same, later})
	if !found || got != want {
		t.Errorf("found %q, %v; want %q", got, found, want)
	}
}

func TestUnsuitableProgramsAreNotFound(t *testing.T) {
	folder := t.TempDir()
	path := program(t, folder, APIServer, "Kubernetes v1.32.4-dispatcher")
	if got, found := locate(t.Context(), apiServer(), []string{folder}); found {
		t.Errorf("found %q, want nothing", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, found := locate(t.Context(), apiServer(), []string{folder}); found {
		t.Errorf("found %q, which can't be run", got)
	}
}

func TestCertManagerIsAlwaysBuilt(t *testing.T) {
	folder := t.TempDir()
	program(t, folder, CertManager, "v1.21.2")
	if got, found := locate(t.Context(), Component{Name: CertManager}, []string{folder}); found {
		t.Errorf("found %q, want nothing", got)
	}
}

func TestKubebuilderAssetsComeBeforePath(t *testing.T) {
	environment := map[string]string{"KUBEBUILDER_ASSETS": "/assets", "PATH": "/usr/bin:/bin"}
	got := searchPath(func(name string) string { return environment[name] })
	if want := []string{"/assets", "/usr/bin", "/bin"}; !slices.Equal(got, want) {
		t.Errorf("search path is %v, want %v", got, want)
	}
}

func TestAdoptedProgramIsUsedUntilItChanges(t *testing.T) {
	elsewhere, cache := t.TempDir(), t.TempDir()
	path := program(t, elsewhere, APIServer, "Kubernetes v1.36.1")
	target := filepath.Join(cache, APIServer)
	if ok, err := present(target); ok || err != nil {
		t.Fatalf("before: present is %v, %v", ok, err)
	}
	if err := adopt(target, path); err != nil {
		t.Fatal(err)
	}
	if ok, err := present(target); !ok || err != nil {
		t.Fatalf("adopted: present is %v, %v", ok, err)
	}
	program(t, elsewhere, APIServer, "Kubernetes v1.37.0 or so")
	if ok, err := present(target); ok || err != nil {
		t.Fatalf("replaced: present is %v, %v", ok, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if ok, err := present(target); ok || err != nil {
		t.Fatalf("removed: present is %v, %v", ok, err)
	}
}

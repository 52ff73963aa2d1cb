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

func TestFirstProgramOfSameMinorVersionIsUsed(t *testing.T) {
	older, broken, same, later := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	program(t, older, APIServer, "Kubernetes v1.35.9")
	if err := os.Chmod(program(t, broken, APIServer, "Kubernetes v1.36.0"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := program(t, same, APIServer, "Kubernetes v1.36.1-dispatcher")
	program(t, later, APIServer, "Kubernetes v1.36.2")
	got, found := installed(t.Context(), APIServer, "v1.36.3", []string{"", ".", "/no/such/folder", older, broken, same, later})
	if !found || got != want {
		t.Errorf("found %q, %v; want %q", got, found, want)
	}
}

func TestCertManagerIsAlwaysBuilt(t *testing.T) {
	folder := t.TempDir()
	program(t, folder, CertManager, "v1.21.2")
	if got, found := installed(t.Context(), CertManager, "v1.21.2", []string{folder}); found {
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

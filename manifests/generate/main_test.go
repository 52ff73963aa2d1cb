package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestManifestsMatchProfiles(t *testing.T) {
	files, err := render()
	must.Do(t, err)
	compareWithFiles(t, "..", files)
}

func TestChartMatchesManifests(t *testing.T) {
	files, err := renderChart("..")
	must.Do(t, err)
	compareWithFiles(t, filepath.Join("..", "..", "charts", "fairlead", chartFolder), files)
}

func compareWithFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must.Do(t, err)
		must.Check(t, string(got) == string(want), "%s is not up to date: run make generate", filepath.Join(dir, name))
	}
}

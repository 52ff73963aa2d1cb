package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestManifestsMatchProfiles(t *testing.T) {
	files, err := render()
	if err != nil {
		t.Fatal(err)
	}
	compareWithFiles(t, "..", files)
}

func TestChartMatchesManifests(t *testing.T) {
	files, err := renderChart("..")
	if err != nil {
		t.Fatal(err)
	}
	compareWithFiles(t, filepath.Join("..", "..", "charts", "fairlead", chartFolder), files)
}

func compareWithFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not up to date: run make generate", filepath.Join(dir, name))
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestManifestsAreWhatTheProfilesSay(t *testing.T) {
	files, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("manifests/%s is not what the profiles say: run make generate", name)
		}
	}
}

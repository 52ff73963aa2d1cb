package main

import (
	"os"
	"testing"
)

func TestManifestsAreWhatTheProfilesSay(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../base/webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatal("manifests/base/webhooks.yaml is not what the profiles say: run make generate")
	}
}

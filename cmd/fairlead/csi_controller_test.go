package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestCSIControllerWithNothingToServeEnds(t *testing.T) {
	o := &csiControllerOptions{}
	o.configFile = filepath.Join(t.TempDir(), "fairlead.yaml")
	text := "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nnfs: {mode: off}\n"
	if err := os.WriteFile(o.configFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context(), slog.New(slog.DiscardHandler)); !errors.Is(err, errNothingToServe) {
		t.Errorf("got %v", err)
	}
}

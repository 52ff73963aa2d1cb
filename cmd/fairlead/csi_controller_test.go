package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestCSIControllerWithNothingToServeEnds(t *testing.T) {
	o := &csiControllerOptions{}
	o.ConfigFile = filepath.Join(t.TempDir(), "fairlead.yaml")
	text := "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nnfs: {mode: off}\n"
	must.Do(t, os.WriteFile(o.ConfigFile, []byte(text), 0o600))
	if err := o.run(t.Context(), slog.New(slog.DiscardHandler)); !errors.Is(err, errNothingToServe) {
		t.Errorf("got %v", err)
	}
}

// A kind with cache options is looked up at the start, and may not be defined.
func TestOndatAloneNeedsNoDefinitionOfNFSServices(t *testing.T) {
	for mode, want := range map[config.Switch]bool{config.On: true, config.Off: false} {
		caches, err := csiCaches(config.NFS{Mode: mode})
		must.Do(t, err)
		services, nfsServices := false, false
		for o := range caches.ByObject {
			switch o.(type) {
			case *corev1.Service:
				services = true
			case *v1alpha1.NFSService:
				nfsServices = true
			}
		}
		must.Check(t, services && nfsServices == want, "mode %s: Services %t, NFSServices %t", mode, services, nfsServices)
	}
}

// Package manifests brings in what is not code: the CRDs of the systems that
// are tested against, and the stages that make simulated nodes and pods live.
package manifests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// source is files of one module that end up in one folder.
type source struct {
	module module
	// patterns are relative to the module.
	patterns []string
	// folder is relative to the manifests' folder.
	folder string
}

// Folders below the manifests' folder.
const (
	crdFolder   = "crds"
	stageFolder = "stages"
)

func sources() []source {
	return []source{
		{
			module: longhorn(), folder: filepath.Join(crdFolder, "longhorn"),
			patterns: []string{"k8s/crds.yaml"},
		},
		{
			module: module{path: controlplane.NetworkAttachmentDefinitionMod}, folder: filepath.Join(crdFolder, "multus"),
			patterns: []string{"artifacts/networks-crd.yaml"},
		},
		{
			module: module{path: controlplane.CertManagerModule}, folder: filepath.Join(crdFolder, "cert-manager"),
			patterns: []string{"deploy/crds/*.yaml"},
		},
		{
			module: module{path: controlplane.KwokModule}, folder: stageFolder,
			patterns: []string{
				"kustomize/stage/node/fast/node-initialize.yaml",
				"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
				"kustomize/stage/pod/fast/pod-*.yaml",
			},
		},
	}
}

// Fetch copies everything to the folder, so that a start needs neither network
// nor Go. moduleSource is this module's own folder.
func Fetch(ctx context.Context, moduleSource, folder string) error {
	for _, source := range sources() {
		from, err := source.module.download(ctx, moduleSource)
		if err != nil {
			return err
		}
		if err := source.copy(from, filepath.Join(folder, source.folder)); err != nil {
			return fmt.Errorf("copying manifests of %s: %w", source.module.path, err)
		}
	}
	return nil
}

func (s source) copy(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, pattern := range s.patterns {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s has no files %s", from, pattern)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

package manifests

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed volumeattachment-attach.yaml
var attachStage []byte

//go:embed pod-ready.yaml
var podReadyStage []byte

// podReadyFile is the one of kwok's stages that podReadyStage takes the place of.
const podReadyFile = "pod-ready.yaml"

// Stages returns everything that kwok is configured with, as one file.
func Stages(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, stageFolder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing stages: %w", err)
	}
	var all bytes.Buffer
	replaced := false
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		if filepath.Base(file) == podReadyFile {
			content, replaced = podReadyStage, true
		}
		all.Write(content)
		all.WriteString("\n---\n")
	}
	// Beside kwok's own under another name, chance would choose between the two.
	if !replaced {
		return nil, fmt.Errorf("no stage %s in %s", podReadyFile, folder)
	}
	all.Write(attachStage)
	return all.Bytes(), nil
}

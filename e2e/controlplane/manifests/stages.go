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

// Stages returns everything that kwok is configured with, as one file.
func Stages(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, stageFolder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing stages: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no stages in %s", folder)
	}
	var all bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		all.Write(content)
		all.WriteString("\n---\n")
	}
	all.Write(attachStage)
	return all.Bytes(), nil
}

package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed volumeattachment-attach.yaml
var attachStage []byte

// replacements have the file names of those of kwok's stages whose place they take.
//
//go:embed pod-ready.yaml pod-delete.yaml
var replacements embed.FS

// Stages returns everything that kwok is configured with, as one file. With attach, kwok stands in for attachers.
func Stages(folder string, attach bool) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, stageFolder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing stages: %w", err)
	}
	var all bytes.Buffer
	replaced := 0
	for _, file := range files {
		content, err := replacements.ReadFile(filepath.Base(file))
		if err == nil {
			replaced++
		} else if content, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		all.Write(content)
		all.WriteString("\n---\n")
	}
	ours, err := replacements.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing our stages: %w", err)
	}
	// Beside kwok's own under another name, chance would choose between the two.
	if replaced != len(ours) {
		return nil, fmt.Errorf("%s has %d of the %d stages that ours take the place of", folder, replaced, len(ours))
	}
	if attach {
		all.Write(attachStage)
	}
	return all.Bytes(), nil
}

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const sumsName = "SHA256SUMS"

// writeSums writes what `sha256sum -c SHA256SUMS` checks.
func writeSums(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("listing the release: %w", err)
	}
	var sums strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return fmt.Errorf("hashing the release: %w", err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	if err := os.WriteFile(filepath.Join(folder, sumsName), []byte(sums.String()), 0o644); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	return nil
}

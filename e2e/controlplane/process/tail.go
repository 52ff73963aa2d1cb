package process

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes is read from the end of a log: enough for 20 long lines without
// reading a log of many megabytes.
const tailBytes = 64 << 10

// Tail returns the last lines of a log file.
func Tail(path string, lines int) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening the log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("reading the log's size: %w", err)
	}
	if _, err := file.Seek(max(0, info.Size()-tailBytes), io.SeekStart); err != nil {
		return "", fmt.Errorf("seeking in the log: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return "", fmt.Errorf("reading the log: %w", err)
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), nil
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// timeline tells what happens, and how long each thing took.
type timeline struct {
	began, last time.Time
}

func (t *timeline) title(text string) {
	fmt.Printf("\n%s\n", text)
	t.last = time.Now()
}

// tell prints a line with the time since the start and since the line before.
func (t *timeline) report(format string, args ...any) {
	now := time.Now()
	if t.last.IsZero() {
		t.last = t.began
	}
	fmt.Printf("  %6.1fs %8s  %s\n", now.Sub(t.began).Seconds(), "+"+short(now.Sub(t.last)), fmt.Sprintf(format, args...))
	t.last = now
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// keep writes what a command printed to a file, if that was asked for.
func (s *show) keep(name string, output []byte) error {
	if s.capture == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(s.capture, name), output, 0o644)
}

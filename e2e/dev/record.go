package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// recordVariable names a file that the tour is also written to: a text, or with the ending .cast an asciicast
// (version 2, for asciinema), which keeps the times.
const recordVariable = "RECORD"

// stage is where a tour is shown: standard output, and the recording if one is asked for. Acts after the first
// are added to the file.
func stage(first bool) (out io.Writer, end func() error, err error) {
	path := os.Getenv(recordVariable)
	if path == "" {
		return os.Stdout, func() error { return nil }, nil
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if first {
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the recording: %w", err)
	}
	var recording io.Writer = file
	if strings.HasSuffix(path, ".cast") {
		c := &cast{to: file, began: time.Now().Add(-lengthOf(path))}
		if first {
			err = c.header()
		}
		recording = c
	}
	return io.MultiWriter(os.Stdout, recording), file.Close, err
}

// lengthOf a cast is the time of its last event; zero without events.
func lengthOf(path string) time.Duration {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var event []any
	if json.Unmarshal([]byte(lines[len(lines)-1]), &event) != nil || len(event) == 0 {
		return 0
	}
	seconds, _ := event[0].(float64) // the header is an object
	return time.Duration(seconds * float64(time.Second))
}

// cast writes each write as an event.
type cast struct {
	to    io.Writer
	began time.Time
}

func (c *cast) header() error {
	return json.NewEncoder(c.to).Encode(map[string]any{"version": 2, "width": 180, "height": 50, "title": "Fairlead"})
}

func (c *cast) Write(p []byte) (int, error) {
	text := strings.ReplaceAll(string(p), "\n", "\r\n") // as a terminal gets it
	if err := json.NewEncoder(c.to).Encode([]any{time.Since(c.began).Seconds(), "o", text}); err != nil {
		return 0, fmt.Errorf("recording: %w", err)
	}
	return len(p), nil
}

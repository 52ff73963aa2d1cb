package binaries

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A program found elsewhere is adopted: linked into the cache, with a note of
// what it was like when its version was asked. That makes the next start a
// matter of two stats, and notices when the program was replaced by another
// version.
type adoption struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
}

func noteFile(target string) string { return target + ".adopted.json" }

// adopt links target to the program at path.
func adopt(target, path string) error {
	note, err := describe(path)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	content, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("encoding the note about %s: %w", path, err)
	}
	if err := os.WriteFile(noteFile(target), content, 0o644); err != nil {
		return fmt.Errorf("noting where %s came from: %w", filepath.Base(target), err)
	}
	temporary := temporaryName(target)
	if err := os.Symlink(path, temporary); err != nil {
		return fmt.Errorf("linking %s: %w", path, err)
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("putting the link to %s in place: %w", path, err)
	}
	return nil
}

// present reports whether target is usable as it is.
func present(target string) (bool, error) {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().IsRegular() {
		return true, nil
	}
	content, err := os.ReadFile(noteFile(target))
	if err != nil {
		// Without its note a link is worth nothing; it is made again.
		return false, nil
	}
	var noted adoption
	if err := json.Unmarshal(content, &noted); err != nil {
		return false, nil
	}
	now, err := describe(noted.Path)
	if err != nil {
		return false, nil
	}
	return now.Size == noted.Size && now.ModTime.Equal(noted.ModTime), nil
}

func describe(path string) (adoption, error) {
	info, err := os.Stat(path)
	if err != nil {
		return adoption{}, err
	}
	return adoption{Path: path, Size: info.Size(), ModTime: info.ModTime()}, nil
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
)

// share is one exported folder.
type share struct {
	export, path string
	folder       changeable
}

// shares are in the order of the flags: file handles name a share by its place.
type shares []share

// Set adds EXPORT=FOLDER (flag.Value).
func (s *shares) Set(text string) error {
	export, folder, ok := strings.Cut(text, "=")
	if !ok || export == "" || folder == "" {
		return errors.New("write EXPORT=FOLDER")
	}
	*s = append(*s, share{export, folder, changeable{osfs.New(folder)}})
	return nil
}

// String implements flag.Value.
func (s *shares) String() string { return fmt.Sprint(len(*s)) }

// of finds the share that a file system is of. go-nfs asks for the handle of a mount
// that was refused too, without a file system.
func (s shares) of(f billy.Filesystem) (int, share) {
	for i, one := range s {
		if f != nil && one.folder.Root() == f.Root() {
			return i, one
		}
	}
	return 0, s[0]
}

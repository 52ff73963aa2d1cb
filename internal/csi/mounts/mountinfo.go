package mounts

import (
	"fmt"
	"strings"

	mount "k8s.io/mount-utils"
)

// readMountInfo reads a file such as /proc/self/mountinfo.
func readMountInfo(path string) ([]Mount, error) {
	infos, err := mount.ParseMountInfo(path)
	if err != nil {
		return nil, fmt.Errorf("reading what is mounted: %w", err)
	}
	list := make([]Mount, 0, len(infos))
	for _, i := range infos {
		target := unescape(i.MountPoint)
		// The directory was removed by another client of the server; the mount is still there.
		for _, suffix := range []string{"//deleted", " (deleted)"} {
			target = strings.TrimSuffix(target, suffix)
		}
		list = append(list, Mount{
			ID: i.ID, Source: unescape(i.Source), Target: target, FsType: i.FsType, Major: i.Major, Minor: i.Minor,
			Options: i.MountOptions, SuperOptions: i.SuperOptions,
		})
	}
	return list, nil
}

// unescape reads \040 and the like, which mountinfo writes for blanks, tabs, line ends,
// backslashes and "#" (seq_path in the kernel).
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && octal(text[i+1:i+4]) {
			b.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// octal reports whether the three digits are one byte.
func octal(digits string) bool {
	for _, d := range []byte(digits) {
		if d < '0' || d > '7' {
			return false
		}
	}
	return digits[0] <= '3'
}

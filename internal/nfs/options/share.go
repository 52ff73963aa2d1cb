package options

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPath is the longest path of a share in bytes (MNTPATHLEN, RFC 1813, section 5.1.4).
const MaxPath = 1024

// ParseShare reads the path that the server exports: absolute, clean, no "..". A
// slash at the end is left out: volumes of other drivers have it, and servers
// export the same directory by both spellings.
func ParseShare(share string) (string, error) {
	if trimmed := strings.TrimSuffix(share, "/"); trimmed != "" {
		share = trimmed
	}
	if err := plainPath("share", share); err != nil {
		return "", err
	}
	if _, exported, found := strings.Cut(share, ":/"); found && !strings.HasPrefix(share, "/") {
		return "", fmt.Errorf("share %q names a server: write %q, and the server in the NFSService", share, path.Clean("/"+exported))
	}
	if !strings.HasPrefix(share, "/") {
		return "", fmt.Errorf("share %q is not absolute: write %q", share, path.Clean("/"+share))
	}
	if clean := path.Clean(share); clean != share {
		return "", fmt.Errorf("share %q is not a clean path: write %q", share, clean)
	}
	return share, nil
}

// Names of the variables in a sub-directory, as csi-driver-nfs has them.
const (
	VariablePVCName      = "${pvc.metadata.name}"
	VariablePVCNamespace = "${pvc.metadata.namespace}"
	VariablePVName       = "${pv.metadata.name}"
)

// ParseSubDir reads the directory below the share to mount: relative, clean, no
// "..". values replaces variables. A variable without a value, and a
// value that would change the path (empty, ".", "..", with a slash), are errors.
// An empty sub-directory is none.
func ParseSubDir(subDir string, values map[string]string) (string, error) {
	if subDir == "" {
		return "", nil
	}
	elements := strings.Split(subDir, "/")
	for i, element := range elements {
		for _, variable := range []string{VariablePVCName, VariablePVCNamespace, VariablePVName} {
			if !strings.Contains(element, variable) {
				continue
			}
			value := values[variable]
			if value == "" || strings.ContainsAny(value, "/$") {
				return "", fmt.Errorf("subdir %q uses %s, whose value %q is no name of a directory: write the directory instead", subDir, variable, value)
			}
			element = strings.ReplaceAll(element, variable, value)
		}
		elements[i] = element
	}
	result := strings.Join(elements, "/")
	if err := plainPath("subdir", result); err != nil {
		return "", err
	}
	if strings.Contains(result, "${") {
		return "", fmt.Errorf("subdir %q has an unknown variable: use %s, %s or %s", subDir, VariablePVCName, VariablePVCNamespace, VariablePVName)
	}
	if clean := strings.TrimPrefix(path.Clean("/"+result), "/"); clean != result {
		return "", fmt.Errorf("subdir %q is not a clean relative path: write %q", result, clean)
	}
	return result, nil
}

// plainPath refuses what no path of an export may have.
func plainPath(what, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("the %s is empty: write a path that the server exports, such as /exports", what)
	case len(text) > MaxPath:
		return fmt.Errorf("the %s has %d bytes, and NFS allows %d: write a shorter path", what, len(text), MaxPath)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s %q has control characters or is not UTF-8: remove them", what, text)
	}
	for _, element := range strings.Split(text, "/") {
		if element == ".." {
			return fmt.Errorf("%s %q leads upwards: write the path without \"..\"", what, text)
		}
	}
	return nil
}

// Source is what to mount: 10.0.0.1:/exports/a, [fd00::1]:/exports/a. share and
// subDir are as ParseShare and ParseSubDir returned them.
func Source(server netip.Addr, share, subDir string) string {
	host := server.String()
	if server.Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + path.Join(share, subDir)
}

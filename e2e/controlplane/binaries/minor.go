package binaries

import (
	"fmt"
	"regexp"
	"strconv"
)

// Minor is a version without its patch level.
type Minor struct{ Major, Minor int }

func (m Minor) majorText() string { return strconv.Itoa(m.Major) }
func (m Minor) minorText() string { return strconv.Itoa(m.Minor) }

func (m Minor) String() string { return fmt.Sprintf("%d.%d", m.Major, m.Minor) }

// versionPattern matches the first version in what a program prints:
// "Kubernetes v1.36.3", "etcd Version: 3.6.8", "kwok version v0.8.0 (go1.26)".
// The suffix is matched to be looked at: "-dispatcher", "-rc.1".
var versionPattern = regexp.MustCompile(`\bv?(\d+)\.(\d+)\.\d+(-[0-9A-Za-z.-]+)?`)

// minorOf reads a version as released. One with a suffix is no release:
// a candidate, or a program that passes its work on to another one, as the
// kubectl of some cloud distributions does.
func minorOf(text string) (Minor, error) {
	match := versionPattern.FindStringSubmatch(text)
	if match == nil {
		return Minor{}, fmt.Errorf("no version in %q", text)
	}
	if match[3] != "" {
		return Minor{}, fmt.Errorf("%q is not a released version", match[0])
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return Minor{}, fmt.Errorf("reading version %q: %w", match[0], err)
	}
	minor, err := strconv.Atoi(match[2])
	if err != nil {
		return Minor{}, fmt.Errorf("reading version %q: %w", match[0], err)
	}
	return Minor{major, minor}, nil
}

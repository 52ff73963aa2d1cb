package options

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// MaxReadAheadKB is 1 GiB. The kernel keeps the value as a number of pages.
const MaxReadAheadKB = 1 << 20

const readAhead = "read_ahead_kb"

// Options of a mount.
type Options struct {
	// Mount options for mount(8), one per element, without read_ahead_kb, in the
	// order in which they were written, each once.
	Mount []string
	// ReadAheadKB in KiB; nil leaves the kernel's default.
	ReadAheadKB *int
	// Unknown are names that neither nfs(5) nor mount(8) has. They are in Mount
	// too: a newer kernel may know them.
	Unknown []string
}

// Parse reads mount options as PersistentVolume.spec.mountOptions has them. An
// element may hold several, separated by commas. field is the path of the list.
// It reports all problems: malformed and contradicting options, and options that
// would lead the mount elsewhere. Unknown ones are for the caller to judge.
func Parse(field string, list []string) (Options, nfs.Problems) {
	var o Options
	var problems nfs.Problems
	first := map[string]written{} // by group
	for i, element := range list {
		path := nfs.Index(field, i)
		texts, err := split(element)
		if err != nil {
			problems.Add(path, "%s", err)
			continue
		}
		for _, text := range texts {
			name, value, hasValue := strings.Cut(text, "=")
			if err := wellFormed(text, name); err != nil {
				problems.Add(path, "%s", err)
				continue
			}
			spec, known := find(name)
			if err := spec.check(name, value, hasValue); err != nil {
				problems.Add(path, "%s", err)
				continue
			}
			if have, ok := first[spec.group(name)]; ok {
				if have.text != text && meaning(have.text) != meaning(text) {
					problems.Add(path, "%q contradicts %q in %s: remove one of them", text, have.text, have.path)
				}
				continue
			}
			first[spec.group(name)] = written{text, path}
			if name == readAhead {
				kb, _ := strconv.Atoi(value) // checked above
				o.ReadAheadKB = &kb
				continue
			}
			if !known {
				o.Unknown = append(o.Unknown, name)
			}
			o.Mount = append(o.Mount, text)
		}
	}
	return o, problems
}

type written struct{ text, path string }

// meaning is the same for the spellings of one option: tcp and proto=tcp, v4.1, vers=4.1 and nfsvers=4.1.
func meaning(text string) string {
	name, value, _ := strings.Cut(text, "=")
	switch group := groupOf(text); group {
	case "version", "transport":
		return cmp.Or(value, strings.TrimPrefix(name, "v"))
	}
	return text
}

// Merge returns own, and the defaults that own does not decide: nfsvers=4.1 leaves
// out a default of vers=3, soft one of hard. Both are elements as in Parse. Merging twice changes nothing.
// Elements of own that are malformed stay as they are, for Parse to report.
func Merge(defaults, own []string) []string {
	decided := map[string]bool{}
	for _, element := range own {
		texts, err := split(element)
		if err != nil {
			continue
		}
		for _, text := range texts {
			decided[groupOf(text)] = true
		}
	}
	merged := append([]string{}, own...)
	for _, element := range defaults {
		texts, err := split(element)
		if err != nil {
			continue
		}
		for _, text := range texts {
			if !decided[groupOf(text)] {
				decided[groupOf(text)] = true
				merged = append(merged, text)
			}
		}
	}
	return merged
}

func groupOf(text string) string {
	name, _, _ := strings.Cut(text, "=")
	spec, _ := find(name)
	return spec.group(name)
}

// ForServer returns the options to mount from a server's port, and a problem where
// the options name another one. field is the path of the options.
func (o Options) ForServer(field string, port uint16) ([]string, nfs.Problems) {
	var problems nfs.Problems
	mount := append([]string{}, o.Mount...)
	text := "port=" + strconv.Itoa(int(port))
	for _, have := range mount {
		if strings.HasPrefix(have, "port=") {
			if have != text {
				problems.Add(field, "%q is not the port of the NFS service, %d: remove the option", have, port)
			}
			return mount, problems
		}
	}
	// mount.nfs asks the port mapper for the port of NFSv3: servers behind a Service may name a port that it does not publish.
	if port != nfs.DefaultPort || o.Version() == 3 {
		mount = append(mount, text)
	}
	return mount, problems
}

// EffectiveReadAheadKB is what the kernel reports after kb was written: whole pages.
func EffectiveReadAheadKB(kb, pageSize int) int {
	page := max(pageSize/1024, 1)
	return kb / page * page
}

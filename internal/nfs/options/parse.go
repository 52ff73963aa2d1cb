package options

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// MaxReadAheadKB is 1 GiB. The kernel keeps the value as a number of pages.
const MaxReadAheadKB = 1 << 20

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
			name, value, _ := strings.Cut(text, "=")
			if err := wellFormed(text, name); err != nil {
				problems.Add(path, "%s", err)
				continue
			}
			if err := checkContext(text, o.Mount); err != nil {
				problems.Add(path, "%s", err)
				continue
			}
			kb, err := check(name, value)
			if err != nil {
				problems.Add(path, "%s", err)
				continue
			}
			if have, ok := first[groupOf(text)]; ok {
				if have.text != text && meaning(have.text) != meaning(text) {
					problems.Add(path, "%q contradicts %q in %s: remove one of them", text, have.text, have.path)
				}
				continue
			}
			first[groupOf(text)] = written{text, path}
			if name == readAhead {
				o.ReadAheadKB = &kb
				continue
			}
			if !isKnown(name) {
				o.Unknown = append(o.Unknown, name)
			}
			o.Mount = append(o.Mount, text)
		}
	}
	if err := o.checkMinor(); err != nil {
		problems.Add(field, "%s", err)
	}
	return o, problems
}

type written struct{ text, path string }

// versions of NFS that clients and probes speak. NFSv2 left Linux in 2021 (5.17).
var versions = []string{"3", "4", "4.0", "4.1", "4.2"}

// check refuses options that no volume may have, values that Fairlead acts on and can't read, and numbers that no kernel takes. The
// kernel judges all others. It returns the value of read_ahead_kb.
func check(name, value string) (kb int, err error) {
	if why := whyRefused(name); why != "" {
		return 0, fmt.Errorf("%s is not allowed: %s; remove it", name, why)
	}
	switch name {
	case readAhead:
		if kb, err = strconv.Atoi(value); err != nil || kb < 0 || kb > MaxReadAheadKB || value[0] == '+' {
			return 0, fmt.Errorf("%s=%s is no number from 0 to %d: write one", name, value, MaxReadAheadKB)
		}
	case "vers", "nfsvers":
		if !slices.Contains(versions, value) {
			return 0, fmt.Errorf("%s=%s is not known: write %s= with one of %s", name, value, name, strings.Join(versions, ", "))
		}
	}
	return kb, checkNumber(name, value)
}

// CheckKnown reports options that neither nfs(5) nor mount(8) has: a mount with a
// misspelled one fails on every node. The option sloppy, which has mount.nfs(8)
// tolerate unknown options, allows those of newer kernels. field is the path of the options.
func (o Options) CheckKnown(field string) nfs.Problems {
	var problems nfs.Problems
	if o.Has(sloppy) {
		return nil
	}
	for _, name := range o.Unknown {
		problems.Add(field, "%s is not an option of nfs(5) or mount(8): correct or remove it; if the nodes' kernel has it, add the option %s", name, sloppy)
	}
	return problems
}

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

// ForServer returns the options to mount from a server's port, and a problem where
// the options name another one. field is the path of the options.
func (o Options) ForServer(field string, port uint16) ([]string, nfs.Problems) {
	var problems nfs.Problems
	mount := slices.Clone(o.Mount)
	switch have := o.Value("port"); {
	case have != "" && have != strconv.Itoa(int(port)):
		problems.Add(field, "\"port=%s\" is not the port of the NFS service, %d: remove the option", have, port)
	// mount.nfs asks the port mapper for the port of NFSv3: servers behind a Service may name a port that it does not publish.
	case have == "" && (port != nfs.DefaultPort || o.Version() == 3):
		mount = append(mount, fmt.Sprintf("port=%d", port))
	}
	return mount, problems
}

// EffectiveReadAheadKB is what the kernel reports after kb was written: whole pages.
func EffectiveReadAheadKB(kb, pageSize int) int {
	page := max(pageSize/1024, 1)
	return kb / page * page
}

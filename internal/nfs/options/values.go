package options

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// numbers are the options whose value is a number without unit, and its bounds. The kernel refuses others, on every node (fs/nfs/fs_context.c
// of Linux 6.12; NFS_MAX_CONNECTIONS and NFS_MAX_TRANSPORTS are 16).
var numbers = map[string]struct{ least, most int }{
	"minorversion": {0, 2}, "nconnect": {1, 16}, "max_connect": {1, 16},
	"port": {0, 65535}, "mountport": {0, 65535}, "mountvers": {1, 3},
	"timeo": {1, math.MaxInt32}, "retrans": {0, math.MaxInt32}, "retry": {0, math.MaxInt32},
	"rsize": {0, math.MaxInt32}, "wsize": {0, math.MaxInt32}, "bsize": {0, math.MaxInt32}, "namlen": {0, math.MaxInt32},
	"acregmin": {0, math.MaxInt32}, "acregmax": {0, math.MaxInt32}, "acdirmin": {0, math.MaxInt32}, "acdirmax": {0, math.MaxInt32}, "actimeo": {0, math.MaxInt32},
}

// checkNumber refuses a value that the kernel can't take.
func checkNumber(name, value string) error {
	bounds, is := numbers[name]
	if !is {
		return nil
	}
	if n, err := strconv.Atoi(value); err == nil && n >= bounds.least && n <= bounds.most && value[0] != '+' {
		return nil
	}
	most := strconv.Itoa(bounds.most)
	if bounds.most == math.MaxInt32 {
		most = "2147483647, without a unit"
	}
	return fmt.Errorf("%s=%s is no number from %d to %s: write one", name, value, bounds.least, most)
}

// category is what follows a comma in an SELinux context without quotes.
var category = regexp.MustCompile(`^c[0-9]+(\.c[0-9]+)?$`)

// checkContext refuses the rest of an SELinux context that was cut at a comma: mount(8) would set another context.
func checkContext(text string, before []string) error {
	if len(before) == 0 || !category.MatchString(text) {
		return nil
	}
	last := before[len(before)-1]
	if name, _, _ := strings.Cut(last, "="); !strings.HasSuffix(name, "context") {
		return nil
	}
	return fmt.Errorf("%s belongs to %s: write a context with a comma in double quotes", text, last)
}

// checkMinor reports a minor version that the other options contradict.
func (o Options) checkMinor() error {
	minor := o.Value("minorversion")
	if minor == "" {
		return nil
	}
	switch version := o.named("version"); {
	case o.Version() == 3:
		return fmt.Errorf("minorversion=%s is of NFSv4, and %s is another version: remove it", minor, version)
	case strings.Contains(version, ".") && !strings.HasSuffix(version, "."+minor):
		return fmt.Errorf("minorversion=%s contradicts %s: remove it", minor, version)
	}
	return nil
}

// named is the option of a group; "" if there is none.
func (o Options) named(group string) string {
	for _, text := range o.Mount {
		if groupOf(text) == group {
			return text
		}
	}
	return ""
}

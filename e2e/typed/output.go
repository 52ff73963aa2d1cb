package typed

import (
	"regexp"
	"strings"
)

// volatile is what differs from run to run, and what stands for it.
var volatile = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "<date>"},
	{regexp.MustCompile(`\b(127\.0\.0\.1|localhost):\d+`), "<address>"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s))+\b`), "<time>"},
	// What Kubernetes makes of generateName, and the hash of a ReplicaSet before.
	{regexp.MustCompile(`(-[0-9a-f]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<name>"},
	// The incident of a lost node, and a NetworkFence of one.
	{regexp.MustCompile(`is open for [0-9a-f]{10}\b`), "is open for <incident>"},
	{regexp.MustCompile(`\b(fairlead-node-\d+)(-[0-9a-f]{10}){2}\b`), "$1-<incident>"},
	{regexp.MustCompile(`\bpvc-[0-9a-f]{8}\b`), "pvc-<id>"},
	{regexp.MustCompile(`\b(instance-manager-[0-9a-f]{32}|backing-image-manager-[0-9a-f]{4}-[0-9a-f]{4})\b`), "<manager>"},
	// Cluster IPs, and what IPAM assigns on the storage network.
	{regexp.MustCompile(`\b(10\.96\.\d+\.\d+|192\.168\.50\.\d+|fd00:50::[0-9a-f]+)\b`), "<ip>"},
	{regexp.MustCompile(` +`), " "},
	// Any node may run the server of a volume.
	{regexp.MustCompile(`(share-manager-pvc-<id>) node-\d+`), "$1 <node>"},
}

// AnyLines stands for lines that a page leaves out.
const AnyLines = "..."

// Matches tells whether a command has printed what the page shows, but for times, ports and generated names.
func Matches(shown, printed string) bool {
	return matchLines(lines(shown), lines(printed))
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		for _, v := range volatile {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func matchLines(shown, printed []string) bool {
	switch {
	case len(shown) == 0:
		return len(printed) == 0
	case shown[0] == AnyLines:
		return matchLines(shown[1:], printed) || len(printed) > 0 && matchLines(shown, printed[1:])
	}
	return len(printed) > 0 && shown[0] == printed[0] && matchLines(shown[1:], printed[1:])
}

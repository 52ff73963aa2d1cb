package catalog

import "testing"

func TestSpellingsOfLogPaths(t *testing.T) {
	const form = `must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`
	checkSpellings(t, LogPath, map[string]spelled{
		"Longhorn's, with a slash":     {value: "/var/lib/longhorn/logs/", normal: "/var/lib/longhorn/logs"},
		"without":                      {value: "/var/log/longhorn", normal: "/var/log/longhorn"},
		"more slashes, dots":           {value: " //var/./log//x ", normal: "/var/log/x"},
		"a space inside":               {value: "/var/my logs", normal: "/var/my logs"},
		"a space that would be lost":   {value: "/var/log /", problem: form},
		"right below /: not used":      {value: "/logs", problem: form},
		"the whole node":               {value: "/", problem: form},
		"the whole node, long":         {value: "/./", problem: form},
		"relative":                     {value: "var/log", problem: form},
		"out of where it seems":        {value: "/var/../etc/x", problem: form},
		"two dots in a name":           {value: "/var/log/a..b", normal: "/var/log/a..b"},
		"empty":                        {value: "", problem: form},
		"more than one line":           {value: "/var/log\n/x", problem: form},
		"no text that can be a path":   {value: "/var/\x00log", problem: form},
		"no text that can be a string": {value: "/var/\xfflog", problem: form},
	})
	if got := LogDirectoryTrait("/var/lib/longhorn/logs/"); got != "/var/lib/longhorn/logs" {
		t.Errorf("of a pod: got %s", got)
	}
}

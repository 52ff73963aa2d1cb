package ui

import (
	"net/url"
	"strings"
)

func volumeLink(name string) string { return "/volumes/" + url.PathEscape(name) }

func settingLink(profile, name string) string {
	return "/settings/" + url.PathEscape(name) + "?" + url.Values{"profile": {profile}}.Encode()
}

// planLink is the form of a plan, filled in.
func planLink(profile, name, value string) string {
	return "/plan?" + url.Values{"profile": {profile}, "name": {name}, "value": {value}}.Encode()
}

func fenceLink(node string) string { return "/fences/" + url.PathEscape(node) }

// serviceLink of <namespace>/<name>.
func serviceLink(service string) string {
	namespace, name, _ := strings.Cut(service, "/")
	return "/nfs/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

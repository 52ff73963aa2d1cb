package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Differences between what was recorded and what is, a line each, with the object, the path and both values.
func Differences(recorded, found []*unstructured.Unstructured) []string {
	wanted, got := byID(recorded), byID(found)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(union(wanted, got))) {
		switch {
		case got[name] == nil:
			lines = append(lines, name+": missing")
		case wanted[name] == nil:
			lines = append(lines, name+": not recorded")
		default:
			lines = append(lines, differ(name, "", wanted[name], got[name])...)
		}
	}
	return lines
}

func byID(objects []*unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, o := range objects {
		all[id(o)] = o.Object
	}
	return all
}

func union(a, b map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// differ walks down two values as long as both are maps, or lists of one length.
func differ(object, path string, want, got any) []string {
	if reflect.DeepEqual(want, got) {
		return nil
	}
	wantMap, isMap := want.(map[string]any)
	gotMap, both := got.(map[string]any)
	if isMap && both {
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(union(wantMap, gotMap))) {
			lines = append(lines, differ(object, path+"."+key, wantMap[key], gotMap[key])...)
		}
		return lines
	}
	wantList, isList := want.([]any)
	gotList, both := got.([]any)
	if isList && both && len(wantList) == len(gotList) {
		var lines []string
		for i := range wantList {
			lines = append(lines, differ(object, fmt.Sprintf("%s[%d]", path, i), wantList[i], gotList[i])...)
		}
		return lines
	}
	return []string{fmt.Sprintf("%s: %s: recorded %s, found %s", object, strings.TrimPrefix(path, "."), show(want), show(got))}
}

func show(value any) string {
	if value == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v", value)
}

package compare

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// file is what changed with a step: objects as they are now, and the names of those that are gone.
type file struct {
	Writes  map[string]any   `json:"writes,omitempty"`
	Changed []map[string]any `json:"changed,omitempty"`
	Gone    []string         `json:"gone,omitempty"`
}

// Write records steps in a folder.
func Write(folder string, steps []Step) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", folder, err)
	}
	before := map[string]any{}
	for _, s := range steps {
		f := file{Writes: s.Writes}
		now := byID(s.Objects)
		for _, o := range s.Objects {
			if !reflect.DeepEqual(before[id(o)], any(o.Object)) {
				f.Changed = append(f.Changed, o.Object)
			}
		}
		for name := range before {
			if now[name] == nil {
				f.Gone = append(f.Gone, name)
			}
		}
		slices.Sort(f.Gone)
		text, err := yaml.Marshal(f)
		if err != nil {
			return fmt.Errorf("writing step %s: %w", s.Name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, s.Name+".yaml"), text, 0o644); err != nil {
			return fmt.Errorf("writing step %s: %w", s.Name, err)
		}
		before = now
	}
	return nil
}

// Read steps that were recorded in a folder.
func Read(folder string) ([]Step, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", folder, err)
	}
	slices.Sort(names)
	var steps []Step
	var objects []*unstructured.Unstructured
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading a step: %w", err)
		}
		var f file
		if err := yaml.Unmarshal(text, &f); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		objects = f.after(objects)
		steps = append(steps, Step{Name: strings.TrimSuffix(filepath.Base(name), ".yaml"), Objects: objects, Writes: f.Writes})
	}
	return steps, nil
}

// after are the objects of a step, by those of the step before.
func (f file) after(before []*unstructured.Unstructured) []*unstructured.Unstructured {
	var changed []*unstructured.Unstructured
	var ids []string
	for _, object := range f.Changed {
		o := &unstructured.Unstructured{Object: object}
		changed, ids = append(changed, o), append(ids, id(o))
	}
	objects := slices.DeleteFunc(slices.Clone(before), func(o *unstructured.Unstructured) bool {
		return slices.Contains(f.Gone, id(o)) || slices.Contains(ids, id(o))
	})
	objects = append(objects, changed...)
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(id(a), id(b)) })
	return objects
}

// raced differences come and go from run to run, with the real manager too. Longhorn and Kubernetes' endpoints controller
// race for the Endpoints of a Service with a selector, and their owner. And Longhorn takes the addresses of a share manager
// that has stopped away when it looks next, up to 30 s later.
var raced = regexp.MustCompile(`^Endpoints \S+: (metadata\.ownerReferences: |subsets: recorded .*, found nothing$)`)

// Compare steps that were recorded with steps that were run: readable lines, without raced differences.
func Compare(recorded, found []Step) string {
	var text bytes.Buffer
	if len(recorded) != len(found) {
		fmt.Fprintf(&text, "%d steps are recorded, %d were run\n", len(recorded), len(found))
	}
	for i := range min(len(recorded), len(found)) {
		lines := Differences(recorded[i].Objects, found[i].Objects)
		lines = append(lines, differ("Writes", "", union(nil, recorded[i].Writes), union(nil, found[i].Writes))...)
		for _, line := range lines {
			if !raced.MatchString(line) {
				fmt.Fprintf(&text, "%s: %s\n", found[i].Name, line)
			}
		}
	}
	return text.String()
}

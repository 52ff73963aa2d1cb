package test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type object map[string]any

// at returns the field at a path, and nil if there is none.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func (o object) name() string {
	namespace, _ := o.at("metadata", "namespace").(string)
	return strings.TrimSpace(o.at("kind").(string) + " " + namespace + "/" + o.at("metadata", "name").(string))
}

func parse(t *testing.T, text string) []object {
	t.Helper()
	var objects []object
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// byName has what may differ taken away: the order of webhooks, the text of the configuration, and what only Helm has.
func byName(t *testing.T, objects []object) map[string]object {
	t.Helper()
	named := map[string]object{}
	for _, o := range objects {
		if _, twice := named[o.name()]; twice {
			t.Errorf("%s is there twice", o.name())
		}
		named[o.name()] = o
		normalize(t, o)
	}
	return named
}

func normalize(t *testing.T, o object) {
	t.Helper()
	// Each webhook's name is unique, and no two of them change the same field.
	if webhooks, ok := o["webhooks"].([]any); ok {
		slices.SortFunc(webhooks, func(a, b any) int {
			return cmp.Compare(object(a.(map[string]any)).at("name").(string), object(b.(map[string]any)).at("name").(string))
		})
	}
	if text, ok := o.at("data", "configuration.yaml").(string); ok {
		var configuration any
		if err := yaml.UnmarshalStrict([]byte(text), &configuration); err != nil {
			t.Fatal(err)
		}
		o["data"].(map[string]any)["configuration.yaml"] = withoutBooleans(configuration)
	}
	dropAnnotation(o.at("spec", "template", "metadata"), "checksum/configuration")
	if o.at("kind") == "CustomResourceDefinition" {
		dropAnnotation(o.at("metadata"), "helm.sh/resource-policy")
	}
}

// withoutBooleans writes on and off, which YAML reads as true and false, as text: Fairlead takes both.
func withoutBooleans(value any) any {
	switch v := value.(type) {
	case bool:
		if v {
			return "on"
		}
		return "off"
	case map[string]any:
		for name, field := range v {
			v[name] = withoutBooleans(field)
		}
	case []any:
		for i, entry := range v {
			v[i] = withoutBooleans(entry)
		}
	}
	return value
}

func dropAnnotation(metadata any, name string) {
	fields, _ := metadata.(map[string]any)
	annotations, _ := fields["annotations"].(map[string]any)
	delete(annotations, name)
	if len(annotations) == 0 {
		delete(fields, "annotations")
	}
}

func sortedNames(objects map[string]object) []string {
	return slices.Sorted(maps.Keys(objects))
}

package review

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

// manifest is an object of a file.
type manifest struct {
	*unstructured.Unstructured
	// file as given on the command line; "-" is standard input.
	file string
	// line of the file where the document begins, from 1.
	line int
	// inside is the ConfigMap that has the object in its data; "" is none.
	inside string
	// created: a controller creates the object, and never updates it.
	created bool
}

func (m manifest) place() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

var (
	errNoManifests = errors.New("no manifests: give files, directories or - by -f")
	errNoObject    = errors.New("not a Kubernetes object: it needs apiVersion, kind and metadata.name")
	errNothing     = errors.New("no manifest was found")
	errEmpty       = errors.New("has no file that ends in .yaml, .yml or .json")
)

// load reads files, directories and standard input, in this order. With recursive, it reads the folders of directories too.
func load(places []string, recursive bool, in io.Reader) ([]manifest, error) {
	if len(places) == 0 {
		return nil, errNoManifests
	}
	var all []manifest
	for _, place := range places {
		files, err := filesOf(place, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := read(file, in)
			if err != nil {
				return nil, err
			}
			found, err := parse(file, text)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	if len(all) == 0 { // such as the output of a command that has failed
		return nil, fmt.Errorf("%s: %w", strings.Join(places, ", "), errNothing)
	}
	return all, nil
}

func filesOf(place string, recursive bool) ([]string, error) {
	if place == "-" {
		return []string{place}, nil
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{place}, nil
	}
	var files []string
	err = filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != place && !recursive:
			return fs.SkipDir
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("directory %s %w", place, errEmpty)
	}
	return files, nil
}

func read(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	return text, nil
}

// separator of YAML documents. A line of text can't begin so: in YAML, the marker ends a text too.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// parse reads the YAML or JSON documents of a file.
func parse(file string, text []byte) ([]manifest, error) {
	var all []manifest
	line, from := 1, 0
	ends := append(separator.FindAllIndex(text, -1), []int{len(text), len(text)})
	for _, end := range ends {
		document := string(text[from:end[0]])
		found, err := parseDocument(document)
		at := line + leading(document)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, at, err)
		}
		for _, o := range found {
			all = append(all, manifest{Unstructured: o, file: file, line: at})
		}
		line += strings.Count(string(text[from:end[1]]), "\n")
		from = end[1]
	}
	return all, nil
}

// leading counts the lines before the first line with content.
func leading(document string) int {
	for i, line := range strings.Split(document, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return i
		}
	}
	return 0
}

// parseDocument returns no object for a document without content, and the items of a list.
func parseDocument(document string) ([]*unstructured.Unstructured, error) {
	// Numbers as the API server decodes them.
	asJSON, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if string(asJSON) == "null" {
		return nil, nil
	}
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(asJSON, nil, nil)
	switch o := decoded.(type) {
	case *unstructured.UnstructuredList:
		var items []*unstructured.Unstructured
		for i := range o.Items {
			if !identified(&o.Items[i]) {
				return nil, errNoObject
			}
			items = append(items, &o.Items[i])
		}
		return items, nil
	case *unstructured.Unstructured:
		if identified(o) {
			return []*unstructured.Unstructured{o}, nil
		}
	}
	if err != nil && !runtime.IsMissingKind(err) && !runtime.IsMissingVersion(err) {
		return nil, fmt.Errorf("%w: %w", errNoObject, err)
	}
	return nil, errNoObject
}

func identified(o *unstructured.Unstructured) bool {
	return o.GetAPIVersion() != "" && o.GetKind() != "" && (o.GetName() != "" || o.GetGenerateName() != "")
}

// withClaims adds the first PersistentVolumeClaim of each template of a StatefulSet: the claims are never in a file, and
// their annotations request networks.
func withClaims(manifests []manifest) []manifest {
	var all []manifest
	for _, m := range manifests {
		all = append(all, m)
		if m.GetKind() != "StatefulSet" || m.GroupVersionKind().Group != "apps" {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(m.Object, "spec", "volumeClaimTemplates")
		for _, t := range templates {
			content, ok := t.(map[string]any)
			if !ok {
				continue
			}
			claim := &unstructured.Unstructured{Object: content}
			claim.SetAPIVersion("v1")
			claim.SetKind(rwx.ClaimKind)
			claim.SetNamespace(m.GetNamespace())
			claim.SetName(claim.GetName() + "-" + m.GetName() + "-0")
			all = append(all, manifest{Unstructured: claim, file: m.file, line: m.line, created: true})
		}
	}
	return all
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestConfigurationPageMatchesTypes(t *testing.T) {
	root := filepath.Join("..", "..")
	page := filepath.Join(root, configurationPage)
	want, err := renderConfiguration(filepath.Join(root, "internal", "config"), page)
	must.Do(t, err)
	got, err := os.ReadFile(page)
	must.Do(t, err)
	must.Check(t, string(got) == string(want), "%s is not up to date: run make generate", configurationPage)
}

// The defaults that comments name are those that the code sets, beside what the file here has.
func TestDefaultsOnThePageAreThoseOfTheCode(t *testing.T) {
	c, err := config.Parse([]byte(`
apiVersion: config.fairlead.io/v1alpha1
kind: Configuration
longhorn: {}
fencing: {profiles: [{name: rook-ceph}]}
ondat: {}
`))
	must.Do(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", configurationPage))
	must.Do(t, err)
	checked := 0
	var check func(value reflect.Value, path string)
	check = func(value reflect.Value, path string) {
		section := string(page)
		if path != "" {
			_, after, found := strings.Cut(section, "\n### "+path+"\n")
			must.Check(t, found, "the page has no section %s", path)
			section, _, _ = strings.Cut(after, "\n###")
		}
		for i := range value.NumField() {
			field, name := value.Field(i), jsonNameOf(value.Type().Field(i))
			if name == "" || name == "name" || name == "apiVersion" || name == "kind" {
				continue
			}
			if field.Kind() == reflect.Pointer && !field.IsNil() {
				field = field.Elem()
			}
			if field.Kind() == reflect.Slice && field.Len() > 0 {
				field = field.Index(0)
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			switch text, isText := textOf(field); {
			case isText && text == "":
			case isText:
				_, after, _ := strings.Cut(section, "- **`"+name+"`**")
				line, _, _ := strings.Cut(after, "\n")
				said := ""
				if match := defaultOnPage.FindStringSubmatch(line); match != nil {
					said = match[1]
				}
				if d, err := time.ParseDuration(said); err == nil {
					said = d.String()
				}
				must.Check(t, said == text, "%s is %s by default; the page says:%s", at, text, line)
				checked++
			case field.Kind() == reflect.Struct:
				check(field, at)
			}
		}
	}
	check(reflect.ValueOf(*c), "")
	must.Check(t, checked > 30, "only %d defaults were checked", checked)
}

func jsonNameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

var defaultOnPage = regexp.MustCompile(`Default:? (.+?)[.,]?( |$)`)

// textOf is a value that is not a list or an object; empty for the zero value.
func textOf(v reflect.Value) (string, bool) {
	_, isDuration := v.Interface().(metav1.Duration)
	switch {
	case !isDuration && v.Kind() != reflect.String && v.Kind() != reflect.Int:
		return "", false
	case v.IsZero():
		return "", true
	case isDuration:
		return v.Interface().(metav1.Duration).Duration.String(), true
	}
	return fmt.Sprint(v.Interface()), true
}

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/config"
)

// An alert on a metric that nobody serves never fires.
func TestMetricsInTheDocsOfNFSExist(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"../controllers", "../internal"} {
		err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			data, err := os.ReadFile(file)
			code.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	names := regexp.MustCompile(`\b(fairlead_(nfs|csi|ondat)|storageos_(api|shared))_[a-z_]+`)
	for _, page := range []string{"nfs-operations.md", "nfs-ondat.md"} {
		found := names.FindAllString(doc(t, page), -1)
		if len(found) < 5 {
			t.Errorf("%s: only %v", page, found)
		}
		for _, name := range found {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
			if !strings.Contains(code.String(), `"`+name+`"`) {
				t.Errorf("%s: nobody serves %s", page, name)
			}
		}
	}
}

func TestConfigurationOfNFSIsDocumented(t *testing.T) {
	configuration, ondat := doc(t, "reference/configuration.md"), doc(t, "nfs-ondat.md")
	for _, c := range []struct {
		page, prefix string
		fields       any
	}{{configuration, "", config.NFS{}}, {configuration, "drivers[].", config.NFSDriver{}}, {configuration, "", config.Ondat{}}, {ondat, "", config.Ondat{}}} {
		kind := reflect.TypeOf(c.fields)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name == "drivers" {
				continue // its fields are
			}
			if !strings.Contains(c.page, "`"+c.prefix+name+"`") {
				t.Errorf("%s: %s%s is not documented", kind, c.prefix, name)
			}
		}
	}
}

func doc(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

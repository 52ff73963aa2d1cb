package docs

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/config"
)

func TestConfigurationOfNFSIsDocumented(t *testing.T) {
	configuration := doc(t, "reference/configuration.md")
	for _, c := range []struct {
		page, prefix string
		fields       any
	}{{configuration, "", config.NFS{}}, {configuration, "drivers[].", config.NFSDriver{}}, {configuration, "", config.Ondat{}}} {
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

func TestBuildsOfTheNodeImageHaveAVersion(t *testing.T) {
	for _, page := range []string{"nfs.md", "../CONTRIBUTING.md"} {
		for line := range strings.Lines(doc(t, page)) {
			if strings.Contains(line, "--target csi-node") && !strings.Contains(line, "--build-arg VERSION=") {
				t.Errorf("%s: fairlead version would say dev: %s", page, line)
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

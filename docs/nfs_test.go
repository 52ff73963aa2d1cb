package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

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
	must.Do(t, err)
	return string(data)
}

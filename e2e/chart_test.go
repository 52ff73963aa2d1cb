package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestChartInstallsUpgradesAndUninstalls uses helm as users do. A later version of the chart has a CRD with one more field.
func TestChartInstallsUpgradesAndUninstalls(t *testing.T) {
	if os.Getenv("FAIRLEAD_HELM") == "" {
		t.Fatal("FAIRLEAD_HELM names no helm: run make test-e2e")
	}
	c := newControlPlane(t, options{})
	c.seedLonghorn()
	c.must(c.InstallChart(t.Context(), func(_, text string) string { return text }))
	c.must(c.RunFairlead(t.Context(), 1, 1)) // waits until the API server calls the webhook
	const crd = "crd/settings.fairlead.io"
	if schema := c.kubectl("get", crd, "-o=yaml"); strings.Contains(schema, "addedField") {
		t.Fatalf("the first version has the later one's field:\n%s", schema)
	}
	before := c.caBundle()

	c.must(c.InstallChart(t.Context(), laterVersion))
	if schema := c.kubectl("get", crd, "-o=yaml"); !strings.Contains(schema, "addedField") {
		t.Errorf("helm upgrade left the CRD as it was:\n%s", schema)
	}
	if after := c.caBundle(); after == "" || after != before {
		t.Errorf("helm upgrade changed the webhooks' CA from %q to %q", before, after)
	}
	const wrong = `{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"name":"not-a-setting","namespace":"longhorn-system"},"value":"x"}`
	if out, err := c.Kubectl(t.Context(), wrong, "create", "--dry-run=server", "-f=-"); err == nil || !strings.Contains(out, "Unsupported value") {
		t.Errorf("after helm upgrade, the webhook does not answer: %s (%v)", out, err)
	}
	if list, err := c.Helm(t.Context(), "list", "--output=json"); err != nil || !strings.Contains(list, "fairlead-0.0.2") || !strings.Contains(list, `"deployed"`) {
		t.Errorf("helm lists %s (%v)", list, err)
	}

	c.must(c.UninstallChart(t.Context()))
	if left := c.kubectl("get", "deployments/fairlead-webhook", "configmaps/fairlead", "mutatingwebhookconfigurations/fairlead",
		"clusterroles/fairlead-webhook", "-n=fairlead-system", "--ignore-not-found", "-o=name"); left != "" {
		t.Errorf("helm uninstall leaves %s", left)
	}
	if settings := c.kubectl("get", "settings.fairlead.io", "-n="+namespace, "-o=name"); settings == "" {
		t.Errorf("helm uninstall deleted the values in %s", crd)
	}
}

// laterVersion edits the chart's files.
func laterVersion(path, text string) string {
	switch path {
	case "Chart.yaml":
		return strings.Replace(text, "\nversion: 0.0.0-dev\n", "\nversion: 0.0.2\n", 1)
	case "templates/generated/crds.yaml":
		const value = "          value:\n"
		return strings.Replace(text, value, "          addedField:\n            type: string\n"+value, 1)
	}
	return text
}

func (c *cluster) caBundle() string {
	return c.kubectl("get", "validatingwebhookconfiguration/"+sandbox.ChartRelease, "-o=jsonpath={.webhooks[0].clientConfig.caBundle}")
}

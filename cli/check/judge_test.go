package check

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// ready is a cluster with all that Fairlead needs, before the installation.
func ready(t *testing.T) facts {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	return facts{
		kubernetes: "v1.36.3", kinds: map[schema.GroupKind]bool{certificates: true, reads.NetworkKind.GroupKind(): true},
		networks: []string{"kube-system/storage-net"}, values: map[catalog.Name]string{catalog.SystemVersion: "v1.7.2"},
		configuration: c, installation: installation.Health{Missing: true, Findings: []string{"Fairlead is not installed"}},
	}
}

// install adds Fairlead to the cluster.
func install(f *facts) {
	for _, kind := range ownKinds {
		f.kinds[schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}] = true
	}
	f.installation = installation.Health{State: datapath.OK, Leader: "fairlead-controller-1"}
}

func TestFindings(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*facts)
		state  datapath.State
		part   string
		says   string
		do     string
	}{
		"may be installed":   {func(*facts) {}, datapath.OK, "Fairlead", "is not installed, and you may install it", ""},
		"runs":               {install, datapath.OK, "Fairlead", "runs; fairlead-controller-1 leads", ""},
		"old Kubernetes":     {func(f *facts) { f.kubernetes = "v1.30.9+k3s1" }, datapath.Wrong, "Kubernetes", `"v1.30.9+k3s1"`, "upgrade to 1.31 or later"},
		"k3s":                {func(f *facts) { f.kubernetes = "v1.31.0+k3s1" }, datapath.OK, "Kubernetes", "v1.31.0+k3s1", ""},
		"no cert-manager":    {func(f *facts) { delete(f.kinds, certificates) }, datapath.Waiting, "cert-manager", "is not installed", "self-signed"},
		"no Multus":          {func(f *facts) { delete(f.kinds, reads.NetworkKind.GroupKind()) }, datapath.Waiting, "Multus", "no kind NetworkAttachmentDefinition", "install Multus"},
		"no network":         {func(f *facts) { f.networks = nil }, datapath.Waiting, "Multus", "has no network", "create a NetworkAttachmentDefinition"},
		"no Longhorn":        {func(f *facts) { f.values = nil }, datapath.Waiting, "Longhorn", "namespace longhorn-system", "-n"},
		"old Longhorn":       {func(f *facts) { f.values[catalog.SystemVersion] = "v1.6.4" }, datapath.Waiting, "Longhorn", "refuses danger-zone changes", "settings: guard (is apply)"},
		"unreadable version": {func(f *facts) { f.values[catalog.SystemVersion] = "master-head" }, datapath.Waiting, "Longhorn", "cannot be read", "docs/install.md"},
		"network is missing": {func(f *facts) {
			f.networkProblem = "there is no NetworkAttachmentDefinition kube-system/gone, and pods on it do not start: create it"
		}, datapath.Wrong, "RWX network", "there is no NetworkAttachmentDefinition kube-system/gone, and pods on it do not start", "create it"},
		"installed without cert-manager": {func(f *facts) { install(f); delete(f.kinds, certificates) }, datapath.OK, "cert-manager", "is not installed", "self-signed"},
		"guards by choice":               {func(f *facts) { f.configuration.Longhorn.Duties.Settings = config.Guard }, datapath.OK, "Longhorn", "v1.7.2", ""},
		"may not read":                   {func(f *facts) { f.unread = []string{"networks: forbidden"} }, datapath.Waiting, "Rights", "not read: networks: forbidden", "administrator"},
		"no rights":                      {func(f *facts) { f.denied = []string{"clusterroles"} }, datapath.Wrong, "Rights", "clusterroles", "administrator"},
		"kinds are missing": {func(f *facts) {
			install(f)
			delete(f.kinds, schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Setting"})
		}, datapath.Wrong, "Fairlead", "no kind Setting", "manifests/crds"},
		"webhooks do not run": {func(f *facts) {
			install(f)
			f.installation = installation.Health{State: datapath.Wrong, Findings: []string{"no replica"}}
		}, datapath.Wrong, "Fairlead", "no replica", ""},
		"csi-addons without fencing": {func(f *facts) { f.kinds[addonsNodes] = true }, datapath.OK, "csi-addons", "is installed; the configuration has no fencing", ""},
		"fencing":                    {func(f *facts) { f.configuration.Fencing.Profiles = make([]config.FencingProfile, 1) }, datapath.Wrong, "csi-addons", "is not installed", "docs/fencing-setup.md"},
		"driver without attachments": {func(f *facts) { f.unattached = []string{objects.CephFS} }, datapath.Wrong, "Fencing", objects.CephFS + " cannot be protected: its CSIDriver has attachRequired: false", "attachRequired: true"},
	} {
		t.Run(name, func(t *testing.T) {
			f := ready(t)
			test.change(&f)
			v := f.view()
			must.Equal(t, v.State, test.state)
			found := false
			for _, finding := range v.Findings {
				if finding.Name == test.part {
					found = true
					must.Check(t, strings.Contains(finding.What, test.says), "got %q", finding.What)
					must.Check(t, strings.Contains(finding.Do, test.do) && (finding.Do == "") == (test.do == ""), "got %q", finding.Do)
				}
			}
			must.Check(t, found, "got %v", v.Findings)
		})
	}
}

func TestOutputIsSafe(t *testing.T) {
	clitest.CheckSafe(t, clitest.Spoiled[View](), func(out io.Writer) error {
		_ = show(out, clitest.Spoiled[View](), cli.OutputTable)
		return nil
	})
}

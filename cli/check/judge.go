package check

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// View is what `fairlead check -o json` prints. Fields are added, never renamed or removed.
type View struct {
	// State is the worst of the findings.
	State    datapath.State `json:"state"`
	Findings []Finding      `json:"findings"`
}

// Finding on one thing that Fairlead needs.
type Finding struct {
	Name  string         `json:"name"`
	State datapath.State `json:"state"`
	// What is there, and what to Do; Do is empty if nothing is to be done.
	What string `json:"what"`
	Do   string `json:"do"`
}

// oldest is the first minor version of Kubernetes that the manifests work with (as in charts/fairlead/Chart.yaml).
var oldest = version.MustParseGeneric("1.31")

var (
	certificates = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	addonsNodes  = schema.GroupKind{Group: "csiaddons.openshift.io", Kind: "CSIAddonsNode"}
	ownKinds     = []string{"Setting", "NetworkRollout", "NodeFence", "NFSService"}
)

// facts are what was read of the cluster.
type facts struct {
	// kubernetes is the API server's version.
	kubernetes string
	kinds      map[schema.GroupKind]bool
	networks   []string
	// values are Longhorn's settings in its namespace.
	values map[catalog.Name]string
	// networkProblem says why pods on the network that the settings choose do not start.
	networkProblem string
	// networkDoubt says why such pods may get no address of their own.
	networkDoubt string
	// unattached are protected drivers that cannot be protected.
	unattached []string
	// unread says what could not be read, and why.
	unread []string
	// denied is what an installation creates and this user may not.
	denied        []string
	configuration *config.Configuration
	installation  installation.Health
}

func (f facts) has(group schema.GroupKind) bool { return f.kinds[group] }

func (f facts) installed() bool { return !f.installation.Missing }

// view judges the facts.
func (f facts) view() View {
	v := View{State: datapath.OK, Findings: []Finding{}}
	add := func(name string, state datapath.State, do, what string, args ...any) {
		v.State = datapath.Worse(v.State, state)
		v.Findings = append(v.Findings, Finding{name, state, fmt.Sprintf(what, args...), do})
	}
	if now, err := version.ParseGeneric(f.kubernetes); err != nil || now.LessThan(oldest) {
		add("Kubernetes", datapath.Wrong, fmt.Sprintf("upgrade to %s or later", oldest), "the API server's version is %q", f.kubernetes)
	} else {
		add("Kubernetes", datapath.OK, "", "%s", f.kubernetes)
	}
	// What is optional is only worth a remark before the installation.
	optional := datapath.Waiting
	if f.installed() {
		optional = datapath.OK
	}
	if f.has(certificates) {
		add("cert-manager", datapath.OK, "", "is installed")
	} else {
		add("cert-manager", optional, "without it, use the overlay self-signed (helm: tls.source=selfSigned)", "is not installed")
	}
	switch {
	case !f.has(reads.NetworkKind.GroupKind()):
		add("Multus", optional, "install Multus, if RWX volumes are to have a network of their own", "is not installed: there is no kind NetworkAttachmentDefinition")
	case len(f.networks) == 0:
		add("Multus", optional, "create a NetworkAttachmentDefinition, if RWX volumes are to have a network of their own", "has no network")
	default:
		add("Multus", datapath.OK, "", "has %s: %s", catalog.Count(len(f.networks), "network"), catalog.FirstOf(f.networks))
	}
	if f.configuration.Longhorn != nil {
		f.longhorn(add)
	}
	switch fencing := f.configuration.Fencing.On(); {
	case f.has(addonsNodes) && fencing:
		add("csi-addons", datapath.OK, "", "is installed")
	case f.has(addonsNodes):
		add("csi-addons", datapath.OK, "", "is installed; the configuration has no fencing")
	case fencing:
		add("csi-addons", datapath.Wrong, "install csi-addons: docs/fencing-setup.md", "is not installed, and the configuration has fencing")
	}
	for _, driver := range f.unattached {
		add("Fencing", datapath.Wrong, fence.UnattachedDo, "%s cannot be protected: %s", driver, fence.Unattached)
	}
	f.fairlead(add)
	for _, what := range f.unread {
		add("Rights", datapath.Waiting, "ask an administrator, or for ClusterRole fairlead-planner once Fairlead is installed", "not read: %s", what)
	}
	return v
}

type add func(name string, state datapath.State, do, what string, args ...any)

func (f facts) longhorn(add add) {
	const name = "Longhorn"
	namespace := f.configuration.Longhorn.Namespace
	text, there := f.values[catalog.SystemVersion]
	duties, known := longhorn.DutiesFor(longhorn.DefaultNames().Versions, text)
	switch {
	case !there:
		add(name, datapath.Waiting, "if it is in another namespace, name the namespace by -n and in the configuration", "is not found in namespace %s", namespace)
		return
	case !known:
		add(name, datapath.Waiting, "see docs/install.md for the versions that were tested", "has the version %q, which cannot be read", text)
		return
	}
	if differs := f.otherDuties(duties); differs != "" {
		add(name, datapath.Waiting, "set in the configuration: "+differs, "%s %s", text, duties.Does)
	} else {
		add(name, datapath.OK, "", "%s in namespace %s", text, namespace)
	}
	if f.networkProblem != "" {
		what, do, _ := strings.Cut(f.networkProblem, ": ")
		add("RWX network", datapath.Wrong, do, "%s", what)
	} else if f.networkDoubt != "" {
		add("RWX network", datapath.Waiting, "see docs/rwx-network.md#what-a-network-needs", "%s", f.networkDoubt)
	}
}

// otherDuties says that the configuration applies settings that this version can't have applied; "" if it doesn't. Fewer duties
// than possible are a decision of the user.
func (f facts) otherDuties(wanted longhorn.VersionDuties) string {
	settings := f.configuration.Longhorn.Duties.Settings
	if settings != config.Apply || wanted.Duties[longhorn.DutySettings] == string(config.Apply) {
		return ""
	}
	return fmt.Sprintf("settings: %s (is %s)", wanted.Duties[longhorn.DutySettings], settings)
}

func (f facts) fairlead(add add) {
	var missing []string
	for _, kind := range ownKinds {
		if !f.has(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}) {
			missing = append(missing, kind)
		}
	}
	switch {
	case !f.installed() && len(f.denied) > 0:
		add("Rights", datapath.Wrong, "let an administrator of the cluster install Fairlead", "you may not create %s", strings.Join(f.denied, ", "))
	case !f.installed():
		add("Fairlead", datapath.OK, "", "is not installed, and you may install it")
	case len(missing) > 0:
		add("Fairlead", datapath.Wrong, "kubectl apply --server-side -k manifests/crds", "has no kind %s: its CustomResourceDefinitions are missing", strings.Join(missing, ", "))
	}
	if f.installed() {
		for i, finding := range f.installation.Findings {
			what, command, found := strings.Cut(finding, ": kubectl ")
			if found {
				command = "kubectl " + command
			}
			add("Fairlead", f.installation.StateOf(i), command, "%s", what)
		}
		if len(f.installation.Findings)+len(missing) == 0 {
			add("Fairlead", datapath.OK, "", "runs; %s leads", cmp.Or(f.installation.Leader, "no controller"))
		}
	}
}

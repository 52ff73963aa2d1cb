// Package cluster runs one control plane, in one folder, from start to stop.
package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/nodes"
)

// Options say what the control plane should be like.
type Options struct {
	// Dir holds everything the control plane writes. No earlier run may have used it.
	Dir           string
	Nodes         int
	ClusterDomain string
	// FastNodeLoss makes a lost node NotReady after seconds rather than most
	// of a minute.
	FastNodeLoss bool
	// AuditGroup is the group of users whose requests are recorded; empty for none.
	AuditGroup string
	// AuditWrites records all writes instead, by whoever, with what came of each.
	AuditWrites bool
	// NoAttacher leaves VolumeAttachments to the attachers of CSI drivers.
	NoAttacher bool
	// Address is where kubelets and pods reach the API server; empty is for simulated nodes, which call no server.
	Address string
	// Kubelets are the names of nodes that have a kubelet. Each gets a kubeconfig of its own in the folder pki.
	Kubelets []string
	// Forwards are ports of pods that can be reached by kubectl port-forward.
	Forwards []Forward
	Cache    binaries.Cache
}

// Defaults are the options of an ordinary cluster.
func Defaults() Options {
	return Options{
		Nodes:         3,
		ClusterDomain: "cluster.local",
	}
}

var domainPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Validate reports all problems at once.
func (o Options) Validate() error {
	var problems []error
	if o.Dir == "" {
		problems = append(problems, errors.New("--dir is required: the folder for everything the control plane writes"))
	}
	if o.Nodes < 0 || o.Nodes > nodes.Max {
		problems = append(problems, fmt.Errorf("--nodes is %d, must be from 0 to %d", o.Nodes, nodes.Max))
	}
	if !domainPattern.MatchString(o.ClusterDomain) {
		problems = append(problems, fmt.Errorf("--cluster-domain %q is not a DNS name", o.ClusterDomain))
	}
	if _, err := netip.ParseAddr(o.Address); o.Address != "" && err != nil {
		problems = append(problems, fmt.Errorf("--address: %w", err))
	}
	if o.AuditGroup != "" && o.AuditWrites {
		problems = append(problems, errors.New("--audit-group and --audit-writes exclude each other"))
	}
	return errors.Join(problems...)
}

// layout names the files below the folder.
type layout struct{ dir string }

func (l layout) path(name string) string { return filepath.Join(l.dir, name) }
func (l layout) pki() string             { return l.path("pki") }
func (l layout) kubeconfig() string      { return l.path("kubeconfig") }
func (l layout) etcdData() string        { return l.path("etcd") }
func (l layout) stages() string          { return l.path("kwok.yaml") }
func (l layout) auditPolicy() string     { return l.path("audit.yaml") }
func (l layout) logs() string            { return l.path("logs") }
func (l layout) log(name string) string  { return filepath.Join(l.logs(), name+".log") }
func (l layout) ready() string           { return l.path("ready") }

// componentKubeconfig is the kubeconfig of one of our own components.
func (l layout) componentKubeconfig(name string) string {
	return filepath.Join(l.pki(), name+".kubeconfig")
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/forwarder"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
)

// Options of a sandbox.
type Options struct {
	// Dir holds everything that is written.
	Dir string
	// Nodes is the number of simulated nodes.
	Nodes int
	// ClusterDomain is the cluster's DNS domain; empty is cluster.local.
	ClusterDomain string
	// Fairlead is the binary to run.
	Fairlead string
	// Duties for Longhorn, as in the configuration, in one line; empty for the defaults.
	Duties string
	// Networks and Windows are networks and maintenanceWindows of the configuration,
	// in one line without their brackets, like gate: node; empty for the defaults.
	Networks, Windows string
	// Fencing as in the configuration, in one line, like {profiles: [{name: rook-ceph}]}:
	// then its component is installed too. Empty for none.
	Fencing string
	// Ondat as in the configuration, without its braces, like apiEndpoint: storageos; for the overlay Ondat.
	Ondat string
	// ControllerArgs are given to the controller beside what its Deployment says.
	ControllerArgs []string
	// LonghornVersion that the stand-in models; empty is the one that it is compared with.
	LonghornVersion string
	// FastNodeLoss makes a lost node NotReady after 12 s instead of 50 s.
	FastNodeLoss bool
	// Audit records what Fairlead asks of the API server; see ReadWrites.
	Audit bool
	// AuditWrites records all writes instead.
	AuditWrites bool
	// NoAttacher leaves VolumeAttachments to a real attacher.
	NoAttacher bool
	// Address is where Kubelets, real nodes by name, and their pods reach the API server; empty for simulated nodes.
	Address  string
	Kubelets []string
	// ForwardPorts lets kubectl port-forward reach the REST API of the webhook.
	ForwardPorts bool
	// Out is told what is done, by more than one at a time.
	Out io.Writer
}

// Sandbox is a running control plane.
type Sandbox struct {
	Options
	State  State
	Client client.WithWatch
	Config *rest.Config
	// Root is the checkout that manifests are read from.
	Root string

	longhornClient client.WithWatch
	release        release.Release

	plane     *controlPlane
	replicas  []*Replica
	dns       []*DNS
	csiAddons []*CSIAddons
	// others are processes of neither; some are started again while the sandbox runs.
	othersMu sync.Mutex
	others   []*Replica
	kept     []*Kept
	forward  *forwarder.Forwarder
	// api is what stands for port apiPort of the webhook's pods; nil without ForwardPorts.
	api *forwarder.Forwarder
	// overlay that is installed, and patches of another version of it.
	overlay, patches string
	record           record
	// sandboxes of pods that were started again.
	sandboxes atomic.Int32
}

// Start builds what is missing, starts the control plane and waits until it is ready.
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	release, err := release.Find(o.LonghornVersion)
	if err != nil {
		return nil, err
	}
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder: %w", err)
	}
	o.Dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	var api *forwarder.Forwarder
	if o.ForwardPorts {
		if api, err = forwarder.New(); err != nil {
			return nil, err
		}
	}
	plane, err := startControlPlane(ctx, root, o, api)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Options: o, Root: root, plane: plane, State: plane.state, release: release, api: api}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Sandbox) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", s.State.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.WarningHandler = rest.NoWarnings{} // nobody here reads them
	scheme, err := reads.NewScheme()
	if err != nil {
		return err
	}
	s.Config = config
	if s.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	asLonghorn := rest.CopyConfig(config)
	names := longhorn.DefaultNames()
	accounts := "system:serviceaccounts"
	asLonghorn.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + names.Namespace + ":" + names.ServiceAccount,
		Groups:   []string{"system:authenticated", accounts, accounts + ":" + names.Namespace},
	}
	if s.longhornClient, err = client.NewWithWatch(asLonghorn, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("building Longhorn's client: %w", err)
	}
	return nil
}

// Stop ends everything that was started, Fairlead first.
func (s *Sandbox) Stop() error {
	s.othersMu.Lock()
	kept := s.kept
	s.othersMu.Unlock()
	for _, k := range kept {
		k.Release()
	}
	var problems []error
	for _, r := range s.replicas {
		problems = append(problems, r.Kill())
	}
	for _, d := range s.dns {
		problems = append(problems, d.process.Kill())
	}
	for _, a := range s.csiAddons {
		problems = append(problems, a.Stop())
	}
	s.othersMu.Lock()
	defer s.othersMu.Unlock()
	for _, r := range s.others {
		problems = append(problems, r.Kill())
	}
	for _, f := range []*forwarder.Forwarder{s.forward, s.api} {
		if f != nil {
			problems = append(problems, f.Close())
		}
	}
	return errors.Join(append(problems, s.plane.stop())...)
}

var errNoCheckout = errors.New("run this from within a checkout of fairlead")

// checkout finds the root of the checkout above the working folder.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "e2e", "controlplane", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errNoCheckout
		}
		dir = parent
	}
}

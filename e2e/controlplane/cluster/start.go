package cluster

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
	"github.com/fairlead-io/fairlead/e2e/controlplane/multus"
	"github.com/fairlead-io/fairlead/e2e/controlplane/nodes"
	"github.com/fairlead-io/fairlead/e2e/controlplane/process"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// starter takes a control plane from nothing to ready.
type starter struct {
	setup
	group    *process.Group
	report   *progress.Reporter
	versions controlplane.Versions
	// background runs what is part of this process.
	background func(name string, run func(context.Context) error)
}

// start returns when everything works, or with the first thing that doesn't.
func (s starter) start(ctx context.Context) (State, error) {
	c, err := newClients(s.files.kubeconfig())
	if err != nil {
		return State{}, err
	}
	steps := []struct {
		what string
		do   func(context.Context, clients) error
	}{
		{"etcd", s.startEtcd},
		{"API server", s.startAPIServer},
		// Before the controller manager: its garbage collector learns of types
		// that come later only after half a minute.
		{"CRDs", s.startCRDs},
		{fmt.Sprintf("controllers, scheduler, cert-manager and %d nodes", s.options.Nodes), s.startRest},
	}
	for i, step := range steps {
		err := s.report.Do(i+1, len(steps), step.what, func() error { return step.do(ctx, c) })
		if err != nil {
			return State{}, err
		}
	}
	state := s.state()
	return state, state.write(s.files.ready())
}

func (s starter) startEtcd(ctx context.Context, _ clients) error {
	if _, err := s.group.Start(s.etcd()); err != nil {
		return err
	}
	return s.awaitHealthy(ctx, binaries.Etcd, s.ports.Etcd, "/health")
}

func (s starter) startAPIServer(ctx context.Context, c clients) error {
	if err := s.writeAuditPolicy(); err != nil {
		return err
	}
	if _, err := s.group.Start(s.apiServer()); err != nil {
		return err
	}
	return awaitAPIServer(ctx, c)
}

func (s starter) startCRDs(ctx context.Context, c clients) error {
	crds, err := manifests.CRDs(s.options.Cache.Manifests())
	if err != nil {
		return err
	}
	return installCRDs(ctx, c.dynamic, crds)
}

// startRest starts together what doesn't depend on each other.
func (s starter) startRest(ctx context.Context, c clients) error {
	stages, err := manifests.Stages(s.options.Cache.Manifests(), !s.options.NoAttacher)
	if err != nil {
		return err
	}
	for _, forward := range s.options.Forwards {
		stages = append(stages, forward.configuration()...)
	}
	if err := os.WriteFile(s.files.stages(), stages, 0o644); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	for _, spec := range []process.Spec{s.controllerManager(), s.scheduler(), s.kwok(), s.certManager()} {
		if _, err := s.group.Start(spec); err != nil {
			return err
		}
	}
	s.background("the Multus simulator", s.simulateMultus)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.createNodes(ctx, c) })
	group.Go(func() error { return awaitServiceAccount(ctx, c) })
	group.Go(func() error { return awaitIssuing(ctx, c) })
	group.Go(func() error {
		return s.awaitHealthy(ctx, binaries.ControllerManager, s.ports.ControllerManager, "/healthz")
	})
	group.Go(func() error { return s.awaitHealthy(ctx, binaries.Scheduler, s.ports.Scheduler, "/readyz") })
	return group.Wait()
}

func (s starter) createNodes(ctx context.Context, c clients) error {
	var change []func(*corev1.Node)
	if len(s.options.Forwards) > 0 {
		change = append(change, nodes.KubeletHere)
	}
	for n := 1; n <= s.options.Nodes; n++ {
		if err := nodes.Create(ctx, c.typed, n, s.versions.Kubernetes, change...); err != nil {
			return err
		}
	}
	return awaitNodes(ctx, c)
}

func (s starter) simulateMultus(ctx context.Context) error {
	c, err := newClients(s.files.componentKubeconfig(simulatorName))
	if err != nil {
		return err
	}
	return multus.Run(ctx, c.config, labels.Set{nodes.ManageLabel: nodes.ManageLabelValue})
}

func (s starter) awaitHealthy(ctx context.Context, name string, port int, path string) error {
	return await(ctx, name, partTimeout, func(ctx context.Context) error {
		return healthy(ctx, s.credentials, "https://"+loopback(port)+path)
	})
}

func (s starter) state() State {
	state := State{
		Kubeconfig:    s.files.kubeconfig(),
		Kubectl:       s.options.Cache.Binary(binaries.Kubectl),
		LogDir:        s.files.logs(),
		ClusterDomain: s.options.ClusterDomain,
		Kubernetes:    s.versions.Kubernetes,
		Pids:          s.group.Pids(),
	}
	state.Pids["controlplane"] = os.Getpid()
	for n := 1; n <= s.options.Nodes; n++ {
		state.Nodes = append(state.Nodes, nodes.Name(n))
	}
	return state
}

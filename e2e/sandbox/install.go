package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
	"github.com/fairlead-io/fairlead/webhook"
)

// Overlays that can be installed.
const (
	CertManager = "cert-manager"
	SelfSigned  = "self-signed"
)

// Install applies the real manifests, with one small overlay on top: the API
// server can't reach a Service here, so it calls the forwarder by URL, and the
// certificate has that name too.
func (s *Sandbox) Install(ctx context.Context, overlay string) error {
	forward, err := NewForwarder()
	if err != nil {
		return err
	}
	s.forward = forward
	dir := filepath.Join(s.Dir, "overlay")
	if err := s.writeOverlay(dir, overlay); err != nil {
		return err
	}
	if out, err := s.Kubectl(ctx, "", "apply", "--server-side", "-k", dir); err != nil {
		return fmt.Errorf("installing: %w\n%s", err, out)
	}
	return nil
}

const overlayText = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
patches:
%s`

func (s *Sandbox) writeOverlay(dir, overlay string) error {
	base, err := filepath.Rel(dir, filepath.Join(s.Root, "manifests", "overlays", overlay))
	if err != nil {
		return fmt.Errorf("finding the manifests: %w", err)
	}
	patches := s.urlPatches()
	if overlay == CertManager {
		patches += `  - target: {kind: Certificate, name: fairlead-webhook}
    patch: '[{"op": "add", "path": "/spec/dnsNames/-", "value": "localhost"}]'
`
	} else {
		patches += `  - target: {kind: Deployment, name: fairlead-webhook}
    patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--serving-name=localhost"}]'
`
	}
	domain := s.ClusterDomain
	if domain == "" {
		domain = "cluster.local"
	}
	// Nothing here takes as long as the API server would wait for it.
	patches += fmt.Sprintf(`  - target: {kind: ConfigMap, name: fairlead}
    patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: fairlead, namespace: fairlead-system}
      data:
        configuration.yaml: |
          apiVersion: config.fairlead.io/v1alpha1
          kind: Configuration
          clusterDomain: %s
          networks: {settle: 8s}
          profiles: [{name: longhorn, duties: {%s}}]
`, domain, s.Duties)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	text := fmt.Sprintf(overlayText, base, patches)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	return nil
}

func (s *Sandbox) urlPatches() string {
	mutating, validating := webhook.Registration(storage.Profiles())
	var text strings.Builder
	replace := func(kind string, paths []string) {
		fmt.Fprintf(&text, "  - target: {kind: %s}\n    patch: |\n", kind)
		for i, path := range paths {
			fmt.Fprintf(&text, "      - op: replace\n        path: /webhooks/%d/clientConfig\n        value: {url: \"https://localhost:%d%s\"}\n", i, s.forward.Port(), path)
		}
	}
	var paths []string
	for _, w := range mutating.Webhooks {
		paths = append(paths, *w.ClientConfig.Service.Path)
	}
	replace("MutatingWebhookConfiguration", paths)
	paths = nil
	for _, w := range validating.Webhooks {
		paths = append(paths, *w.ClientConfig.Service.Path)
	}
	replace("ValidatingWebhookConfiguration", paths)
	return text.String()
}

// Deployments of Fairlead.
const (
	WebhookDeployment    = "fairlead-webhook"
	ControllerDeployment = "fairlead-controller"
)

// RunFairlead starts what the Deployments say, with that many webhook replicas,
// and waits until they are ready and the API server trusts them.
func (s *Sandbox) RunFairlead(ctx context.Context, webhooks, controllers int) error {
	var started []*Replica
	start := func(deployment, role string, n int) error {
		for i := range n {
			r, err := s.StartReplica(ctx, deployment, fmt.Sprintf("%s-%d", role, i))
			if err != nil {
				return err
			}
			started = append(started, r)
		}
		return nil
	}
	if err := errors.Join(start(WebhookDeployment, "webhook", webhooks), start(ControllerDeployment, "controller", controllers)); err != nil {
		return err
	}
	for _, r := range started {
		if err := r.WaitReady(ctx); err != nil {
			return err
		}
	}
	if controllers > 0 {
		if err := s.waitRecorded(ctx); err != nil {
			return err
		}
	}
	return s.waitTrusted(ctx)
}

// waitRecorded waits until the controller has written down what the cluster runs
// and has reported on Fairlead's own settings.
func (s *Sandbox) waitRecorded(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.SettingList
		if err := s.Client.List(ctx, &list, client.InNamespace(storage.Longhorn().Namespace)); err != nil {
			return false, err
		}
		for _, setting := range list.Items {
			if len(setting.Status.Conditions) == 0 {
				return false, nil
			}
		}
		return len(list.Items) == len(settings.All()), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the controller's first report: %w", err)
	}
	return nil
}

// waitTrusted waits until a request really goes through: the CA is injected and
// the API server has taken up the configuration.
func (s *Sandbox) waitTrusted(ctx context.Context) error {
	probe := `{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"name":"not-a-setting","namespace":"longhorn-system"},"value":"x"}`
	var last string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, probe, "create", "--dry-run=server", "-f", "-")
		last = out
		return err != nil && strings.Contains(out, "Unsupported value"), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the webhooks to be called: %w; last answer: %s", err, last)
	}
	return nil
}

// deployment reads a Deployment, and its template's one container.
func (s *Sandbox) deployment(ctx context.Context, name string) (*appsv1.Deployment, *corev1.Container, error) {
	var d appsv1.Deployment
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: webhook.Namespace, Name: name}, &d); err != nil {
		return nil, nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return &d, &d.Spec.Template.Spec.Containers[0], nil
}

// WebhookAddress is where the API server calls the webhooks.
func (s *Sandbox) WebhookAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.forward.Port()) }

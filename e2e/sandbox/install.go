package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/forwarder"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// Overlays that can be installed.
const (
	CertManager = "cert-manager"
	SelfSigned  = "self-signed"
	// RookCeph is cert-manager and fencing, without Longhorn.
	RookCeph = "rook-ceph"
	// NFS is cert-manager and NFS services, without Longhorn and without fencing.
	NFS = "nfs"
	// Ondat is Ondat's shared volumes alone: no webhooks, no CSI driver, no NFSServices.
	Ondat = "ondat"
)

// Components of fencing. fencingComponent adds it to an overlay that has none; what
// is opt-in is always there: without configuration it does nothing.
const (
	fencingComponent         = "components/fencing"
	fencingTaintingComponent = "components/fencing-tainting"
	// cephClientsComponent needs cert-manager.
	cephClientsComponent = "components/fencing-ceph-clients"
)

// Install applies the real manifests, with one small overlay on top: the API
// server can't reach a Service here, so it calls the forwarder by URL, and the
// certificate has that name too.
func (s *Sandbox) Install(ctx context.Context, overlay string) error {
	forward, err := forwarder.New()
	if err != nil {
		return err
	}
	s.forward, s.overlay = forward, overlay
	if s.fences() {
		if err := s.createNamespace(ctx, profiles.RookCeph().Namespace); err != nil {
			return err
		}
	}
	return s.apply(ctx)
}

// apply installs the overlay as the options are now.
func (s *Sandbox) apply(ctx context.Context) error {
	dir := filepath.Join(s.Dir, "overlay")
	if err := s.writeOverlay(dir, s.overlay); err != nil {
		return err
	}
	if out, err := s.Kubectl(ctx, "", "apply", "--server-side", "-k", dir); err != nil {
		return fmt.Errorf("installing: %w\n%s", err, out)
	}
	return nil
}

// fences tells whether fencing is installed.
func (s *Sandbox) fences() bool { return s.Fencing != "" || s.overlay == RookCeph }

// longhorn tells whether Fairlead works for Longhorn.
func (s *Sandbox) longhorn() bool {
	return s.overlay != RookCeph && s.overlay != NFS && s.overlay != Ondat
}

func (s *Sandbox) createNamespace(ctx context.Context, name string) error {
	err := s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

const overlayText = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
components: [%s]
patches:
%s`

func (s *Sandbox) writeOverlay(dir, overlay string) error {
	manifests, err := filepath.Rel(dir, filepath.Join(s.Root, "manifests"))
	if err != nil {
		return fmt.Errorf("finding the manifests: %w", err)
	}
	base, components := filepath.Join(manifests, "overlays", overlay), []string{}
	if s.fences() && overlay != RookCeph {
		components = append(components, filepath.Join(manifests, fencingComponent))
	}
	if s.fences() {
		components = append(components, filepath.Join(manifests, fencingTaintingComponent))
	}
	if overlay == RookCeph {
		components = append(components, filepath.Join(manifests, cephClientsComponent))
	}
	patches := ""
	if overlay != Ondat {
		patches = s.urlPatches()
	}
	switch overlay {
	case SelfSigned:
		patches += `  - target: {kind: Deployment, name: fairlead-webhook}
    patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--serving-name=localhost"}]'
`
	case Ondat:
		patches += s.ondatPatch()
	default:
		patches += `  - target: {kind: Certificate, name: fairlead-webhook}
    patch: '[{"op": "add", "path": "/spec/dnsNames/-", "value": "localhost"}]'
`
	}
	if overlay != NFS && overlay != Ondat {
		patches += s.configurationPatch()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	text := fmt.Sprintf(overlayText, base, strings.Join(components, ", "), patches+s.patches)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	return nil
}

// fixedAddresses are those that the tests and the tour ask for.
const fixedAddresses = `{network: kube-system/backup-net, namespaces: [default], ranges: ["192.168.60.8/29", "fd00:60::10/124"], macPrefixes: ["02:00:00:00:60"]}, ` +
	"{network: team-x/nfs, namespaces: [team-x], ranges: [192.168.70.0/26]}"

func (s *Sandbox) configurationPatch() string {
	domain, longhorn, fencing := cmp.Or(s.ClusterDomain, "cluster.local"), "", "{}"
	if s.longhorn() {
		longhorn = fmt.Sprintf("longhorn: {duties: {%s}, networks: {settle: 8s, perVolume: [kube-system/backup-net, team-x/nfs], fixedAddresses: [%s], %s}, maintenanceWindows: [%s]}", s.Duties, fixedAddresses, s.Networks, s.Windows)
	}
	if s.fences() {
		fencing = cmp.Or(s.Fencing, "{profiles: [{name: rook-ceph}]}")
	}
	// Nothing here takes as long as the API server would wait for it.
	return fmt.Sprintf(`  - target: {kind: ConfigMap, name: fairlead}
    patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: fairlead, namespace: fairlead-system}
      data:
        configuration.yaml: |
          apiVersion: config.fairlead.io/v1alpha1
          kind: Configuration
          clusterDomain: %s
          %s
          fencing: %s
`, domain, longhorn, fencing)
}

// ondatPatch has the credentials where the volume of the first controller is.
func (s *Sandbox) ondatPatch() string {
	return fmt.Sprintf(`  - target: {kind: ConfigMap, name: fairlead}
    patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: fairlead, namespace: fairlead-system}
      data:
        configuration.yaml: |
          apiVersion: config.fairlead.io/v1alpha1
          kind: Configuration
          nfs: {mode: off}
          ondat: {apiSecretPath: %s, %s}
`, s.volumeFolder(FirstController, "ondat-api"), s.Ondat)
}

// urlPatches are by name: components put their webhooks where they like.
func (s *Sandbox) urlPatches() string {
	var parts []webhook.Part
	if s.longhorn() {
		parts = append(parts, webhook.PartLonghorn)
	}
	if s.fences() {
		parts = append(parts, webhook.PartFencing)
	}
	if s.overlay == NFS {
		parts = append(parts, webhook.PartNFS)
	}
	entries := webhook.Entries(webhook.Installed(), parts...)
	var mutating, validating []namedPath
	for _, e := range entries {
		if e.IsMutating() {
			mutating = append(mutating, namedPath{e.Name(), e.Path})
		} else {
			validating = append(validating, namedPath{e.Name(), e.Path})
		}
	}
	return s.urlPatch("MutatingWebhookConfiguration", mutating) + s.urlPatch("ValidatingWebhookConfiguration", validating)
}

type namedPath struct{ name, path string }

func (s *Sandbox) urlPatch(kind string, webhooks []namedPath) string {
	var text strings.Builder
	fmt.Fprintf(&text, "  - patch: |\n      apiVersion: admissionregistration.k8s.io/v1\n      kind: %s\n      metadata: {name: %s}\n      webhooks:\n", kind, registration.ConfigurationName)
	for _, w := range webhooks {
		fmt.Fprintf(&text, "        - {name: %s, clientConfig: {service: null, url: \"https://localhost:%d%s\"}}\n", w.name, s.forward.Port(), w.path)
	}
	return text.String()
}

// Deployments of Fairlead.
const (
	WebhookDeployment    = "fairlead-webhook"
	ControllerDeployment = "fairlead-controller"
	// CSIControllerDeployment is there with the overlays NFS and Ondat, in place of the controller.
	CSIControllerDeployment = "fairlead-csi-controller"
)

// FirstController is the replica of the controller that RunFairlead starts first.
const FirstController = "controller-0"

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
	controller := ControllerDeployment
	if s.overlay == NFS || s.overlay == Ondat {
		controller = CSIControllerDeployment
	}
	if err := errors.Join(start(WebhookDeployment, "webhook", webhooks), start(controller, "controller", controllers)); err != nil {
		return err
	}
	for _, r := range started {
		if err := r.WaitReady(ctx); err != nil {
			return err
		}
	}
	return s.waitWorking(ctx, controllers > 0)
}

// WaitWorking waits until Fairlead has written its first reports, and the API server trusts its webhooks.
func (s *Sandbox) WaitWorking(ctx context.Context) error { return s.waitWorking(ctx, true) }

func (s *Sandbox) waitWorking(ctx context.Context, controllers bool) error {
	if controllers && s.longhorn() {
		if err := s.waitRecorded(ctx); err != nil {
			return err
		}
	}
	if s.longhorn() {
		if err := s.waitTrusted(ctx, "Unsupported value", `{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"name":"not-a-setting","namespace":"longhorn-system"},"value":"x"}`); err != nil {
			return err
		}
	}
	if s.overlay == NFS {
		return s.waitTrusted(ctx, "no source of servers", `{"apiVersion":"fairlead.io/v1alpha1","kind":"NFSService","metadata":{"name":"none","namespace":"default"},"spec":{}}`)
	}
	if s.fences() {
		return s.waitTrusted(ctx, "must be", `{"apiVersion":"fairlead.io/v1alpha1","kind":"NodeFence","metadata":{"name":"not-a-node","annotations":{"fairlead.io/override-gate":"x"}}}`)
	}
	return nil
}

// waitRecorded waits until the controller has written down what the cluster runs
// and has reported on Fairlead's own settings.
func (s *Sandbox) waitRecorded(ctx context.Context) error {
	return eventually.Until(ctx, "the controller's first report", time.Minute, func() error {
		var list v1alpha1.SettingList
		if err := s.Client.List(ctx, &list, client.InNamespace(longhorn.DefaultNames().Namespace)); err != nil {
			return err
		}
		for _, setting := range list.Items {
			if len(setting.Status.Conditions) == 0 {
				return fmt.Errorf("%s has no status", setting.Name)
			}
		}
		if len(list.Items) != len(catalog.All()) {
			return fmt.Errorf("there are %d settings", len(list.Items))
		}
		return nil
	})
}

// waitTrusted waits until a request really goes through: the CA is injected and
// the API server has taken up the configuration. The probe is refused with a text that has refusal in it.
func (s *Sandbox) waitTrusted(ctx context.Context, refusal, probe string) error {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON([]byte(probe)); err != nil {
		return fmt.Errorf("reading the probe of the webhooks: %w", err)
	}
	return eventually.Until(ctx, "the webhooks to be called", time.Minute, func() error {
		answer := s.Client.Create(ctx, object.DeepCopy(), client.DryRunAll)
		refused, is := answer.(apierrors.APIStatus)
		if is && (strings.Contains(answer.Error(), refusal) || strings.Contains(fmt.Sprint(refused.Status().Details), refusal)) {
			return nil
		}
		return fmt.Errorf("the answer was: %v", answer)
	})
}

// deployment reads a Deployment, and its template's one container.
func (s *Sandbox) deployment(ctx context.Context, name string) (*appsv1.Deployment, *corev1.Container, error) {
	var d appsv1.Deployment
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: name}, &d); err != nil {
		return nil, nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return &d, &d.Spec.Template.Spec.Containers[0], nil
}

// WebhookAddress is where the API server calls the webhooks.
func (s *Sandbox) WebhookAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.forward.Port()) }

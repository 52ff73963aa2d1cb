package installation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Everything else may be fine while Fairlead itself does nothing.
func TestFairleadItselfIsJudged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(client.Object)
		state  datapath.State
		want   string
	}{
		"as it should be": {func(client.Object) {}, datapath.OK, ""},
		"scaled to 0": {func(o client.Object) {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == webhooks {
				d.Spec.Replicas, d.Status.ReadyReplicas = ptr.To[int32](0), 0
			}
		}, datapath.Wrong, "fairlead-webhook is scaled to 0: settings of the danger zone can't be changed"},
		// Regression: that no controller leads was a second finding, whose command has no pod to ask.
		"controller scaled to 0": {func(o client.Object) {
			switch o := o.(type) {
			case *appsv1.Deployment:
				if o.Name == controller {
					o.Spec.Replicas, o.Status.ReadyReplicas = ptr.To[int32](0), 0
				}
			case *coordinationv1.Lease:
				o.Spec.HolderIdentity = nil
			}
		}, datapath.Wrong, "fairlead-controller is scaled to 0: no setting is applied"},
		"none ready": {func(o client.Object) {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == controller {
				d.Status.ReadyReplicas = 0
			}
		}, datapath.Wrong, "no replica of fairlead-controller is ready: no setting is applied"},
		"one of two": {func(o client.Object) {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == webhooks {
				d.Status.ReadyReplicas = 1
			}
		}, datapath.Waiting, "1 of 2 replicas of fairlead-webhook are ready"},
		"no leader": {func(o client.Object) {
			if l, ok := o.(*coordinationv1.Lease); ok {
				renewed := metav1.NewMicroTime(clitest.Noon.Add(-2 * time.Minute))
				l.Spec.RenewTime = &renewed
			}
		}, datapath.Wrong, "no controller leads (Lease fairlead-controller of namespace fairlead-system: holder \"fairlead-controller-1\""},
		"no CA": {func(o client.Object) {
			if c, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
				c.Webhooks[0].ClientConfig.CABundle = nil
			}
		}, datapath.Wrong, "1 of 2 webhooks have no CA (settings.longhorn.fairlead.io)"},
		"no webhooks": {func(o client.Object) {
			if c, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
				c.Name = "other"
			}
		}, datapath.Wrong, "a webhook configuration named fairlead is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects.Installation(clitest.Noon)
			for _, o := range all {
				test.change(o)
			}
			i, err := Read(t.Context(), clitest.Client(t, interceptor.Funcs{}, all...), clitest.Noon)
			must.True(t, err == nil && i.State == test.state, "state %s, %v: %q", i.State, err, i.Findings)
			must.True(t, strings.Contains(strings.Join(i.Findings, "\n"), test.want) && len(i.Findings) == min(len(test.want), 1), "got %q", i.Findings)
		})
	}
}

func TestWarningsEndNoCommand(t *testing.T) {
	var out strings.Builder
	none := clitest.Client(t, interceptor.Funcs{})
	Warn(t.Context(), &out, none, clitest.Noon)
	must.Equal(t, out.String(), "Warning: Fairlead itself: Fairlead is not installed in namespace fairlead-system: see docs/install.md\n")
	out.Reset()
	for want, refusal := range map[string]error{
		"": apierrors.NewForbidden(appsv1.Resource("deployments"), webhooks, nil),
		"Warning: whether Fairlead itself works is not known: too slow\n": errors.New("too slow"),
	} {
		out.Reset()
		refuse := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refusal
		}}
		Warn(t.Context(), &out, clitest.Client(t, refuse), clitest.Noon)
		must.Equal(t, out.String(), want)
	}
}

func TestMalformedConfigurationIsReported(t *testing.T) {
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: own}, Data: map[string]string{cli.ConfigurationKey: "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nlonghorn: {networks: {gaet: node}}\n"}}
	i, err := Read(t.Context(), clitest.Client(t, interceptor.Funcs{}, append(objects.Installation(clitest.Noon), configuration)...), clitest.Noon)
	must.True(t, err == nil && i.State == datapath.Wrong && len(i.Findings) == 1 && strings.Contains(i.Findings[0], `correct it. reading YAML: unknown field "longhorn.networks.gaet"`), "%v: %q", err, i.Findings)
}

func TestMissingKindsAreReported(t *testing.T) {
	refuse := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, own := list.(*v1alpha1.SettingList); own {
			return &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("Setting").GroupKind()}
		}
		return c.List(ctx, list, options...)
	}}
	i, err := Read(t.Context(), clitest.Client(t, refuse, objects.Installation(clitest.Noon)...), clitest.Noon)
	must.True(t, err == nil && i.State == datapath.Wrong && len(i.Findings) == 1 && strings.Contains(i.Findings[0], "kubectl apply --server-side -k manifests/crds"), "%v: %q", err, i.Findings)
}

func TestConfigurationThatDoesNotRunIsReported(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "fairlead-webhook-1", Labels: map[string]string{"app.kubernetes.io/name": "fairlead"}}}
	pod.Status.StartTime = ptr.To(metav1.NewTime(clitest.Noon.Add(-time.Hour)))
	changed := metav1.NewTime(clitest.Noon.Add(-time.Minute))
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: own, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &changed}}}}
	configuration.Data = map[string]string{cli.ConfigurationKey: "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\n"}
	i := ownObjects{configured: configuration, pods: []corev1.Pod{*pod}, deployments: map[string]*appsv1.Deployment{webhooks: {}}}.judge(clitest.Noon)
	restart := "pod fairlead-webhook-1 had started, which runs the configuration of before: kubectl -n fairlead-system rollout restart deployment fairlead-webhook fairlead-controller"
	must.True(t, strings.Contains(strings.Join(i.Findings, "\n"), restart), "got %q", i.Findings)
	restarted := pod.DeepCopy() // after a mistake in the configuration, in the same pod
	restarted.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(clitest.Noon)}}}}
	pod.Status.StartTime = ptr.To(metav1.NewTime(clitest.Noon))
	for _, pod := range []*corev1.Pod{pod, restarted} {
		i = ownObjects{configured: configuration, pods: []corev1.Pod{*pod}, deployments: map[string]*appsv1.Deployment{webhooks: {}}}.judge(clitest.Noon)
		must.True(t, !strings.Contains(strings.Join(i.Findings, "\n"), "ConfigMap"), "got %q", i.Findings)
	}
}

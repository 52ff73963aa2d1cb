// Package installation says whether Fairlead itself works in a cluster, as status, check and warnings of other commands show.
package installation

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// Health is the state of Fairlead itself.
type Health struct {
	State datapath.State `json:"state"`
	// Missing: Fairlead is not installed.
	Missing bool `json:"missing,omitempty"`
	// Leader is the controller's pod that leads; empty if none does.
	Leader string `json:"leader"`
	// Findings are what is not as it should be, each with what to do. Never null.
	Findings []string `json:"findings"`
	// states of the findings.
	states []datapath.State
}

// Idle reports whether no controller leads: records are old then, and nothing is repaired.
func (i Health) Idle() bool { return i.Leader == "" && len(i.Findings) > 0 && !i.Missing }

// StateOf a finding.
func (i Health) StateOf(finding int) datapath.State {
	if finding < len(i.states) {
		return i.states[finding]
	}
	return i.State
}

// Names of Fairlead's objects (manifests/base).
const (
	ownNamespace = "fairlead-system"
	webhooks     = "fairlead-webhook"
	controller   = reads.LeaseName // also of the Deployment
	own          = "fairlead"      // the webhook configurations and the ConfigMap
)

// ownObjects are the objects that show whether Fairlead works; nil if there is none.
type ownObjects struct {
	deployments map[string]*appsv1.Deployment
	pods        []corev1.Pod
	lease       reads.Lease
	mutating    *admissionregistrationv1.MutatingWebhookConfiguration
	validating  *admissionregistrationv1.ValidatingWebhookConfiguration
	configured  *corev1.ConfigMap
	// withoutKinds: Fairlead's CustomResourceDefinitions are missing.
	withoutKinds bool
}

// Read reads the objects of Fairlead itself and judges them.
func Read(ctx context.Context, live client.Reader, now time.Time) (Health, error) {
	o := ownObjects{deployments: map[string]*appsv1.Deployment{}}
	var err error
	for _, name := range []string{webhooks, controller} {
		if o.deployments[name], err = there(ctx, live, ownNamespace, name, &appsv1.Deployment{}); err != nil {
			return Health{}, err
		}
	}
	if o.lease, err = reads.ReadLease(ctx, live, ownNamespace); err != nil {
		return Health{}, err
	}
	if o.mutating, err = there(ctx, live, "", own, &admissionregistrationv1.MutatingWebhookConfiguration{}); err != nil {
		return Health{}, err
	}
	if o.validating, err = there(ctx, live, "", own, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
		return Health{}, err
	}
	if o.configured, err = there(ctx, live, ownNamespace, own, &corev1.ConfigMap{}); err != nil {
		return Health{}, err
	}
	err = live.List(ctx, &v1alpha1.SettingList{}, client.Limit(1))
	if o.withoutKinds = lists.NotInstalled(err); err != nil && !o.withoutKinds {
		return Health{}, fmt.Errorf("listing settings.%s: %w", v1alpha1.GroupVersion.Group, err)
	}
	var pods corev1.PodList
	if err := lists.NewLive(live).List(ctx, &pods, client.InNamespace(ownNamespace), client.MatchingLabels{"app.kubernetes.io/name": "fairlead"}); err != nil {
		return Health{}, fmt.Errorf("listing pods of namespace %s: %w", ownNamespace, err)
	}
	o.pods = pods.Items
	return o.judge(now), nil
}

// Warn writes what is not as it should be with Fairlead itself. What a record says may be old then. A caller without the
// rights to read it is not warned; another error is written, and the command goes on.
func Warn(ctx context.Context, out io.Writer, live client.Reader, now time.Time) {
	h, err := Read(ctx, live, now)
	if err != nil && !apierrors.IsForbidden(err) {
		cli.WriteLine(out, "Warning: whether Fairlead itself works is not known: %v", err)
	}
	for _, finding := range h.Findings {
		cli.WriteLine(out, "Warning: Fairlead itself: %s", finding)
	}
}

// Idle reports whether no controller leads. A caller who may not read the Lease is told that one does.
func Idle(ctx context.Context, live client.Reader, now time.Time) bool {
	lease, err := reads.ReadLease(ctx, live, ownNamespace)
	return err == nil && lease.Idle(now)
}

// there reads an object; nil if there is none.
func there[T client.Object](ctx context.Context, live client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	return into, err
}

// judge is pure.
func (o ownObjects) judge(now time.Time) Health {
	i := Health{State: datapath.OK, Findings: []string{}}
	if o.deployments[webhooks] == nil && o.deployments[controller] == nil && o.mutating == nil && o.validating == nil {
		i.Missing = true
		i.find(datapath.Wrong, "Fairlead is not installed in namespace %s: see docs/install.md", ownNamespace)
		return i
	}
	if o.withoutKinds {
		i.find(datapath.Wrong, "the CustomResourceDefinitions of %s are missing: kubectl apply --server-side -k manifests/crds", v1alpha1.GroupVersion.Group)
	}
	i.replicas(webhooks, o.deployments[webhooks], "settings of the danger zone can't be changed, and new pods and Services do not get their network")
	i.replicas(controller, o.deployments[controller], "no setting is applied, no endpoint is published, and no lost node is fenced")
	if d := o.deployments[controller]; d != nil && ptr.Deref(d.Spec.Replicas, 1) > 0 {
		i.leads(o.lease, now)
	}
	var without []string
	count := 0
	for _, w := range ptr.Deref(o.mutating, admissionregistrationv1.MutatingWebhookConfiguration{}).Webhooks {
		count++
		if len(w.ClientConfig.CABundle) == 0 {
			without = append(without, w.Name)
		}
	}
	for _, w := range ptr.Deref(o.validating, admissionregistrationv1.ValidatingWebhookConfiguration{}).Webhooks {
		count++
		if len(w.ClientConfig.CABundle) == 0 {
			without = append(without, w.Name)
		}
	}
	switch {
	case o.mutating == nil || o.validating == nil || count == 0:
		i.find(datapath.Wrong, "a webhook configuration named %s is missing, so the API server does not ask Fairlead: apply the manifests again", own)
	case len(without) > 0:
		i.find(datapath.Wrong, "%d of %d webhooks have no CA (%s), so the API server can't call them: cert-manager fills it in; see kubectl -n cert-manager get pods, and kubectl -n %s describe certificate", len(without), count, without[0], ownNamespace)
	}
	if err := malformed(o.configured); err != nil {
		i.find(datapath.Wrong, "ConfigMap %s is malformed for this version of Fairlead, whose pods could not start again: correct it. %v", own, err)
	} else if changed := changedAt(o.configured); !changed.IsZero() {
		for _, pod := range o.pods {
			if started := startOf(pod); !started.IsZero() && pod.DeletionTimestamp == nil && changed.After(started) {
				i.find(datapath.Waiting, "ConfigMap %s was changed at %s, after pod %s had started, which runs the configuration of before: kubectl -n %s rollout restart deployment %s %s",
					own, changed.UTC().Format(time.RFC3339), pod.Name, ownNamespace, webhooks, controller)
				break
			}
		}
	}
	return i
}

// malformed says what is wrong with the configuration in the ConfigMap; nil if nothing is, or there is none.
func malformed(c *corev1.ConfigMap) error {
	if c == nil {
		return nil
	}
	_, err := config.Parse([]byte(c.Data[cli.ConfigurationKey]))
	return err
}

func (i *Health) find(state datapath.State, format string, args ...any) {
	i.State, i.Findings, i.states = datapath.Worse(i.State, state), append(i.Findings, fmt.Sprintf(format, args...)), append(i.states, state)
}

// replicas judges a Deployment. without says what does not work while no replica runs.
func (i *Health) replicas(name string, d *appsv1.Deployment, without string) {
	look := fmt.Sprintf("kubectl -n %s describe pods", ownNamespace)
	switch {
	case d == nil:
		i.find(datapath.Wrong, "Deployment %s is missing in namespace %s: %s. Apply the manifests again", name, ownNamespace, without)
	case ptr.Deref(d.Spec.Replicas, 1) == 0:
		i.find(datapath.Wrong, "%s is scaled to 0: %s: kubectl -n %s scale deployment %s --replicas=2", name, without, ownNamespace, name)
	case d.Status.ReadyReplicas == 0:
		i.find(datapath.Wrong, "no replica of %s is ready: %s: %s", name, without, look)
	case d.Status.ReadyReplicas < ptr.Deref(d.Spec.Replicas, 1):
		i.find(datapath.Waiting, "%d of %d replicas of %s are ready: %s", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 1), name, look)
	}
}

// leads judges the Lease of the controller.
func (i *Health) leads(lease reads.Lease, now time.Time) {
	if lease.Leads(now) {
		i.Leader = lease.Holder
		return
	}
	i.find(datapath.Wrong, "no controller leads (Lease %s of namespace %s: holder %q, renewed %s): kubectl -n %s logs deployment/%s",
		controller, ownNamespace, lease.Holder, lease.Renewed.UTC().Format(time.RFC3339), ownNamespace, controller)
}

// startOf is when the process of a pod started, which may have been restarted in it; zero if unknown.
func startOf(pod corev1.Pod) time.Time {
	var started time.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil && c.State.Running.StartedAt.After(started) {
			started = c.State.Running.StartedAt.Time
		}
	}
	return started
}

// changedAt is when the data of a ConfigMap was last written; zero if that is unknown.
func changedAt(c *corev1.ConfigMap) time.Time {
	if c == nil || len(c.ManagedFields) == 0 {
		return time.Time{}
	}
	last := slices.MaxFunc(c.ManagedFields, func(a, b metav1.ManagedFieldsEntry) int {
		return ptr.Deref(a.Time, metav1.Time{}).Compare(ptr.Deref(b.Time, metav1.Time{}).Time)
	})
	return ptr.Deref(last.Time, metav1.Time{}).Time
}

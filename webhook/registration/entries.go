// Package registration has the webhook configurations and admission policies, from which the manifests are generated.
package registration

import (
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Names of what the manifests install.
const (
	Namespace         = "fairlead-system"
	ServiceName       = "fairlead-webhook"
	ConfigurationName = "fairlead"
	// ControllerUser is the controller's account. Rules exempt it where its facts are fresher than theirs.
	ControllerUser = "system:serviceaccount:" + Namespace + ":fairlead-controller"
)

// Pods, Services and statuses wait for Fairlead at most as long as these timeouts, in seconds.
const (
	MutateTimeout   int32 = 5
	validateTimeout int32 = 10
	DeleteTimeout   int32 = 3
)

// Entry is one entry of a webhook configuration: for what, and when, the API server asks a rule.
type Entry struct {
	// Path of the rule: /mutate/<entry>, /validate/<entry>, or in Longhorn's namespace /mutate/longhorn/<entry>.
	Path  string
	Rules []admissionregistrationv1.RuleWithOperations
	// FailClosed: without an answer the API server refuses the request.
	FailClosed bool
	// Timeout in seconds; 0 is the default of the kind.
	Timeout             int32
	Namespaces, Objects *metav1.LabelSelector
	// Conditions save calls; the rule itself allows what they exclude.
	Conditions []admissionregistrationv1.MatchCondition
	// Once: no other webhook may undo what the rule writes, so it is not asked again.
	Once bool
}

// Name of the webhook in its configuration: <entry>.fairlead.io or <entry>.longhorn.fairlead.io.
func (e Entry) Name() string {
	parts := strings.Split(e.Path, "/")[2:]
	slices.Reverse(parts)
	return strings.Join(parts, ".") + ".fairlead.io"
}

// IsMutating reports whether the rule may change objects.
func (e Entry) IsMutating() bool { return strings.HasPrefix(e.Path, "/mutate/") }

// Configurations are the webhook configurations with the entries. The CA bundle is injected in the cluster.
func Configurations(entries []Entry) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	for _, e := range entries {
		if w := e.Webhook(); !e.IsMutating() {
			validating.Webhooks = append(validating.Webhooks, w)
		} else {
			again := admissionregistrationv1.IfNeededReinvocationPolicy
			if e.Once {
				again = admissionregistrationv1.NeverReinvocationPolicy
			}
			mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
				AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions, ReinvocationPolicy: &again,
			})
		}
	}
	return mutating, validating
}

// Webhook is the entry in a configuration.
func (e Entry) Webhook() admissionregistrationv1.ValidatingWebhook {
	failure, timeout := admissionregistrationv1.Ignore, e.Timeout
	if e.FailClosed {
		failure = admissionregistrationv1.Fail
	}
	switch {
	case timeout == 0 && e.IsMutating():
		timeout = MutateTimeout
	case timeout == 0:
		timeout = validateTimeout
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name: e.Name(),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: Namespace, Name: ServiceName, Path: &e.Path, Port: ptr.To[int32](443),
		}},
		Rules:                   e.Rules,
		FailurePolicy:           &failure,
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       e.Namespaces,
		ObjectSelector:          e.Objects,
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         e.Conditions,
	}
}

func Created(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return On(group, version, resource, admissionregistrationv1.Create)
}

func Written(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return On(group, version, resource, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

func Changed(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return On(group, version, resource, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)
}

func On(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}
}

// ofCluster is for kinds that have no namespace.
func OfCluster(rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	rule.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return rule
}

func Rules(r ...admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	return r
}

func Conditions(c ...admissionregistrationv1.MatchCondition) []admissionregistrationv1.MatchCondition {
	return c
}

func Condition(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
}

func Labels(match map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: match}
}

// inNamespace selects one namespace, by the label that the API server keeps.
func InNamespace(name string) *metav1.LabelSelector {
	return Labels(map[string]string{corev1.LabelMetadataName: name})
}

func NotInNamespaces(names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: names},
	}}
}

// Entries in Longhorn's namespace: the last names of their paths.
const (
	EntryClientPods               = "client-pods"
	EntryServerPods               = "server-pods"
	EntryClientTemplate           = "client-template"
	EntryServices                 = "services"
	EntryShareManagers            = "sharemanagers"
	EntrySettingStatus            = "setting-status"
	EntrySettings                 = "settings"
	EntryInstanceManagerDeletions = "instance-manager-deletions"
)

// MutatePath is the path of a mutating entry in Longhorn's namespace.
func MutatePath(entry string) string { return "/mutate/" + longhorn.Name + "/" + entry }

// ValidatePath is the path of a validating entry in Longhorn's namespace.
func ValidatePath(entry string) string { return "/validate/" + longhorn.Name + "/" + entry }

// Paths of entries in all namespaces.
const (
	NetworksPath       = "/validate/networks"
	VolumeNetworksPath = "/validate/volume-networks"
	StraySettingsPath  = "/validate/stray-settings"

	// One entry is for all fenced storage systems: the driver tells them apart.
	AttachmentMarksPath    = "/mutate/attachment-marks"
	AttachmentsPath        = "/validate/attachments"
	NodesPath              = "/validate/nodes"
	NodeFenceOverridesPath = "/mutate/nodefence-overrides"
	NodeFencesPath         = "/validate/nodefences"

	NFSServicesPath      = "/validate/nfs-services"
	NFSVolumesPath       = "/validate/nfs-volumes"
	NFSVolumeOptionsPath = "/mutate/nfs-volume-options"
)

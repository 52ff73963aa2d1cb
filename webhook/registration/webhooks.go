package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
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
	mutateTimeout   int32 = 5
	validateTimeout int32 = 10
	deleteTimeout   int32 = 3
)

// Webhooks are the webhook configurations of the profiles, as the manifests install them. The CA bundle is injected in
// the cluster.
func Webhooks(profiles []storage.Profile) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	for _, p := range profiles {
		mutating.Webhooks = append(mutating.Webhooks,
			mutate(p, EntryClientPods, created("", "v1", "pods"), labels(p.ClientLabels)),
			mutate(p, EntryServerPods, created("", "v1", "pods"), labels(p.ServerLabels)),
			// Longhorn gives this DaemonSet no label: only its name identifies it.
			mutate(p, EntryClientTemplate, written("apps", "v1", "daemonsets"), nil,
				condition("the-client-daemonset", fmt.Sprintf("request.name == %q", p.ClientDaemonSet)),
				condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", ControllerUser))),
			mutate(p, EntryServices, created("", "v1", "services"), &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: p.VolumeLabel, Operator: metav1.LabelSelectorOpExists}},
			}),
			mutate(p, EntryShareManagers, on(longhorn.GroupVersion.Group, longhorn.GroupVersion.Version, "sharemanagers/status", admissionregistrationv1.Update), nil,
				condition("has-an-endpoint", "has(object.status) && has(object.status.endpoint) && object.status.endpoint != ''")),
			mutate(p, EntrySettingStatus, on(longhorn.GroupVersion.Group, longhorn.GroupVersion.Version, "settings/status", admissionregistrationv1.Update), nil,
				condition("chooses-the-network-for-rwx-volumes", "object.metadata.name in "+names(catalog.ChooseSharedNetwork())),
				condition("turns-applied", "has(object.status) && object.status.applied && !(has(oldObject.status) && has(oldObject.status.applied) && oldObject.status.applied)"),
				condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", ControllerUser))),
		)
		validating.Webhooks = append(validating.Webhooks, validateSettings(p), validateInstanceManagerDeletions(p))
	}
	validating.Webhooks = append(validating.Webhooks, validateNetworks(), validateVolumeNetworks(), validateStraySettings(profiles))
	return mutating, validating
}

func clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: Namespace, Name: ServiceName, Path: &path, Port: ptr.To[int32](443),
	}}
}

func mutate(p storage.Profile, entry string, rule admissionregistrationv1.RuleWithOperations, objects *metav1.LabelSelector, conditions ...admissionregistrationv1.MatchCondition) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entry + "." + p.Name + ".fairlead.io",
		ClientConfig:            clientConfig(MutatePath(p.Name, entry)),
		Rules:                   []admissionregistrationv1.RuleWithOperations{rule},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore), // the controller repairs
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       inNamespace(p.Namespace),
		ObjectSelector:          objects,
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions:         conditions,
	}
}

func validateSettings(p storage.Profile) admissionregistrationv1.ValidatingWebhook {
	// AutoCleanup may contradict a setting of the danger zone.
	all, judged := names(catalog.All()), names(append(catalog.DangerZone(), catalog.Definition{Name: catalog.AutoCleanup}))
	return admissionregistrationv1.ValidatingWebhook{
		Name:         EntrySettings + "." + p.Name + ".fairlead.io",
		ClientConfig: clientConfig(ValidatePath(p.Name, EntrySettings)),
		Rules: []admissionregistrationv1.RuleWithOperations{
			on(longhorn.GroupVersion.Group, longhorn.GroupVersion.Version, "settings", admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete),
			on("fairlead.io", "v1alpha1", "settings", admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete),
		},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail), // an unchecked setting can do harm
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       inNamespace(p.Namespace),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			// The object's name: the request of a deletecollection has none.
			condition("a-setting-that-fairlead-judges", "request.resource.group == 'fairlead.io' || "+
				"(request.operation == 'DELETE' ? oldObject.metadata.name : object.metadata.name) in "+judged),
			condition("value-changed", "request.operation != 'UPDATE' || (has(object.value) != has(oldObject.value)) || (has(object.value) && object.value != oldObject.value)"),
			// A namespace, or all of a kind, going away must not wait for Fairlead.
			condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
			// At its start, longhorn-manager deletes settings that its version has replaced. It does not start if it can't.
			condition("not-a-replaced-one", "!(request.operation == 'DELETE' && request.resource.group != 'fairlead.io' && oldObject.metadata.name in "+names(replaced())+")"),
			// The controller creates Fairlead's own settings without a value.
			condition("not-an-empty-one", "!(request.operation == 'CREATE' && request.resource.group == 'fairlead.io' && !has(object.value) && object.metadata.name in "+all+")"),
			notADefault(),
			notTheStorageSystemsOwn(p),
		},
	}
}

// notTheStorageSystemsOwn: at its start, longhorn-manager creates settings also with values of older settings
// (endpoint-network-for-rwx-volume, from 1.11) and of its ConfigMap of default settings. It does not start if it can't.
// Changes made in its UI are updates by the same account, and are checked.
func notTheStorageSystemsOwn(p storage.Profile) admissionregistrationv1.MatchCondition {
	return condition("not-created-by-the-storage-system", fmt.Sprintf(
		"!(request.operation == 'CREATE' && request.resource.group != 'fairlead.io' && request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':%s')",
		p.ServiceAccount))
}

// validateInstanceManagerDeletions is for deletions of Ready pods by the storage system itself. Evictions are no
// deletions, and administrators and Kubernetes' controllers have other accounts.
func validateInstanceManagerDeletions(p storage.Profile) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    EntryInstanceManagerDeletions + "." + p.Name + ".fairlead.io",
		ClientConfig:            clientConfig(ValidatePath(p.Name, EntryInstanceManagerDeletions)),
		Rules:                   []admissionregistrationv1.RuleWithOperations{on("", "v1", "pods", admissionregistrationv1.Delete)},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore), // a pod must never wait for Fairlead
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       inNamespace(p.Namespace),
		ObjectSelector:          labels(p.InstanceManagerLabels),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(deleteTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("by-the-storage-system", fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':%s'", p.ServiceAccount)),
			condition("of-a-pod-that-works", "!has(oldObject.metadata.deletionTimestamp) && oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"),
		},
	}
}

// replaced are the settings that a later version of the storage system no longer has.
func replaced() []catalog.Definition {
	return slices.DeleteFunc(catalog.DangerZone(), func(d catalog.Definition) bool { return d.Until == "" })
}

// notADefault: at its start, longhorn-manager creates missing settings with their defaults. It does not start if it can't.
func notADefault() admissionregistrationv1.MatchCondition {
	return condition("not-a-default", fmt.Sprintf(
		"!(request.operation == 'CREATE' && request.resource.group != 'fairlead.io' && has(object.value) && object.metadata.name in %[1]s && object.value in %[1]s[object.metadata.name])", defaults()))
}

func noteChanged(annotation string) string {
	in := func(object string) string {
		return fmt.Sprintf("%s.?metadata.?annotations[?'%s'].orValue('')", object, annotation)
	}
	return fmt.Sprintf("%s != (request.operation == 'CREATE' ? '' : %s)", in("object"), in("oldObject"))
}

// cleanUp, in CEL: Kubernetes deletes the objects of a deleted namespace, owner or kind. Without
// --use-service-account-credentials, the controller manager has one user for all its controllers.
const cleanUp = "request.userInfo.username in ['system:serviceaccount:kube-system:namespace-controller', " +
	"'system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager', 'system:apiserver']"

// defaults maps the settings of the danger zone to their defaults in all versions, in CEL.
func defaults() string {
	var entries []string
	for _, d := range catalog.DangerZone() {
		var values []string
		for _, value := range append([]string{d.Default}, d.OtherDefaults...) {
			values = append(values, fmt.Sprintf("'%s'", value))
		}
		entries = append(entries, fmt.Sprintf("'%s': [%s]", d.Name, strings.Join(values, ", ")))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

// names lists the names of settings in CEL.
func names(definitions []catalog.Definition) string {
	var list []string
	for _, d := range definitions {
		list = append(list, fmt.Sprintf("'%s'", d.Name))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func validateNetworks() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryNetworks + ".fairlead.io",
		ClientConfig: clientConfig(NetworksPath),
		Rules: []admissionregistrationv1.RuleWithOperations{
			on("k8s.cni.cncf.io", "v1", "network-attachment-definitions", admissionregistrationv1.Update, admissionregistrationv1.Delete),
		},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       notInNamespaces(Namespace),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("config-changed-or-deleted", "request.operation == 'DELETE' || object.?spec.?config.orValue('') != oldObject.?spec.?config.orValue('')"),
			condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
		},
	}
}

func created(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resource, admissionregistrationv1.Create)
}

func written(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resource, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

func on(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}
}

func condition(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
}

func labels(match map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: match}
}

// inNamespace selects one namespace, by the label that the API server keeps.
func inNamespace(name string) *metav1.LabelSelector {
	return labels(map[string]string{corev1.LabelMetadataName: name})
}

func notInNamespaces(names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: names},
	}}
}

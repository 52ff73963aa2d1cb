package webhook

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// longhornRoutes are the rows of Longhorn. The mutating ones fail open: the controller repairs.
func longhornRoutes(n longhorn.Names) []Route {
	here := registration.InNamespace(n.Namespace)
	mutate := func(entry string, rule admissionregistrationv1.RuleWithOperations, objects *metav1.LabelSelector, conditions ...admissionregistrationv1.MatchCondition) registration.Entry {
		return registration.Entry{Path: registration.MutatePath(entry), Rules: registration.Rules(rule), Namespaces: here, Objects: objects, Conditions: conditions}
	}
	notFairlead := registration.Condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", registration.ControllerUser))
	return []Route{
		{
			Part: PartLonghorn, For: "Pod create, by label, one namespace", Down: "created without the network; the controller restarts it",
			Entry: mutate(registration.EntryClientPods, registration.Created("", "v1", "pods"), registration.Labels(n.ClientLabels)),
			Here:  readRecord(),
			rule:  func(s served) named { return when(s.longhorn.shapesClients(), s.longhorn.clientPods()) },
		},
		{
			Part: PartLonghorn, For: "Pod create, by label, one namespace", Down: "created without the network; reported, and corrected when its volume is detached",
			Entry: mutate(registration.EntryServerPods, registration.Created("", "v1", "pods"), registration.Labels(n.ServerLabels)),
			Here:  rights(readRecord(), readServices()),
			rule:  func(s served) named { return when(s.longhorn.shapesPods(), s.longhorn.serverPods()) },
		},
		{
			// Longhorn gives this DaemonSet no label: only its name identifies it.
			Part: PartLonghorn, For: "the CSI plugin DaemonSet, by name, written by others than Fairlead's controller", Down: "stored as it is; the controller corrects it",
			Entry: mutate(registration.EntryClientTemplate, registration.Written("apps", "v1", "daemonsets"), nil,
				registration.Condition("the-client-daemonset", fmt.Sprintf("request.name == %q", n.ClientDaemonSet)), notFairlead),
			Here: readRecord(),
			rule: func(s served) named { return when(s.longhorn.shapesClients(), s.longhorn.clientTemplate()) },
		},
		{
			Part: PartLonghorn, For: "Service create with the volume label", Down: "as Longhorn builds it from its values; recreated when the volume is detached",
			Entry: mutate(registration.EntryServices, registration.Created("", "v1", "services"), &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: n.VolumeLabel, Operator: metav1.LabelSelectorOpExists}},
			}),
			Cluster: readRequest(), Here: rights(readRecord(), readPods()),
			rule: func(s served) named { return when(s.longhorn.shapesServices(), s.longhorn.services()) },
		},
		{
			Part: PartLonghorn, For: "`sharemanagers/status` update with an endpoint", Down: "corrected by the controller",
			Entry: mutate(registration.EntryShareManagers, registration.On(system.Group, system.Version, "sharemanagers/status", admissionregistrationv1.Update), nil,
				registration.Condition("has-an-endpoint", "has(object.status) && has(object.status.endpoint) && object.status.endpoint != ''")),
			Here: readServices(),
			rule: func(s served) named { return when(s.longhorn.shapesServices(), s.longhorn.shareManagers()) },
		},
		{
			Part: PartLonghorn, For: "`settings/status` of Longhorn's settings for RWX volumes, when `applied` turns true", Down: "Longhorn counts it as applied when its own gate is open",
			Entry: mutate(registration.EntrySettingStatus, registration.On(system.Group, system.Version, "settings/status", admissionregistrationv1.Update), nil,
				registration.Condition("chooses-the-network-for-rwx-volumes", "object.metadata.name in "+names(catalog.ChooseSharedNetwork())),
				registration.Condition("turns-applied", "has(object.status) && object.status.applied && !(has(oldObject.status) && has(oldObject.status.applied) && oldObject.status.applied)"),
				notFairlead),
			Cluster: readVolumes(), Here: rights(readSettings(), readRecord(), readServices(), readLonghornVolumes()),
			rule: func(s served) named {
				return when(s.longhorn.Duties.Settings == config.Apply, s.longhorn.settingStatus())
			},
		},
		{
			Part: PartLonghorn, For: "settings of the danger zone and `auto-cleanup-system-generated-snapshot`, when changed or deleted", Down: "**refused**",
			Entry:   settingsOf(n),
			Cluster: readFacts(), Here: readFactsHere(n),
			rule: func(s served) named { return when(s.longhorn.checksSettings(), s.longhorn.settings()) },
		},
		{
			// For deletions of Ready pods by the storage system itself: evictions are no deletions, and administrators and
			// Kubernetes' controllers have other accounts. A pod must never wait for Fairlead, so the entry fails open.
			Part: PartLonghorn, For: "Ready pods of instance managers, by label, one namespace, when Longhorn's service account deletes them", Down: "deleted, also in use",
			Entry: registration.Entry{
				Path: registration.ValidatePath(registration.EntryInstanceManagerDeletions), Timeout: registration.DeleteTimeout,
				Rules: registration.Rules(registration.On("", "v1", "pods", admissionregistrationv1.Delete)), Namespaces: here, Objects: registration.Labels(n.InstanceManagerLabels),
				Conditions: registration.Conditions(
					registration.Condition("by-the-storage-system", fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':%s'", n.ServiceAccount)),
					registration.Condition("of-a-pod-that-works", "!has(oldObject.metadata.deletionTimestamp) && oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"),
				),
			},
			Cluster: rights(may("", "nodes", "get")), Here: rights(may("longhorn.io", "instancemanagers", "get"), may("longhorn.io", "volumes", "get")),
			rule: func(s served) named { return when(s.longhorn.checksSettings(), s.longhorn.instanceManagerDeletions()) },
		},
		{
			Part: PartLonghorn, For: "NetworkAttachmentDefinition, when the config changes or it is deleted", Down: "no warning",
			Entry: registration.Entry{
				Path: registration.NetworksPath, Namespaces: registration.NotInNamespaces(registration.Namespace),
				Rules: registration.Rules(registration.On("k8s.cni.cncf.io", "v1", "network-attachment-definitions", admissionregistrationv1.Update, admissionregistrationv1.Delete)),
				Conditions: registration.Conditions(
					registration.Condition("config-changed-or-deleted", "request.operation == 'DELETE' || object.?spec.?config.orValue('') != oldObject.?spec.?config.orValue('')"),
					registration.Condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
				),
			},
			Cluster: rights(readRollout(), readRequest()), Here: readRolloutHere(),
			rule: func(s served) named { return when(s.longhorn.Duties.Networks == config.On, s.longhorn.networks(s.use)) },
		},
		{
			// Claims are in every namespace and must not wait. So the entry fails open, and the API server calls it only if
			// an annotation of Fairlead's changes.
			Part: PartLonghorn, For: "PersistentVolumeClaim, PersistentVolume, StorageClass, when an annotation `fairlead.io/…` is added, changed or removed", Down: "not checked; invalid annotations have no effect",
			Entry: registration.Entry{
				Path: registration.VolumeNetworksPath, Namespaces: registration.NotInNamespaces(registration.Namespace, metav1.NamespaceSystem),
				Rules: registration.Rules(
					registration.Written("", "v1", "persistentvolumeclaims"), registration.OfCluster(registration.Written("", "v1", "persistentvolumes")),
					registration.OfCluster(registration.Written("storage.k8s.io", "v1", "storageclasses")),
				),
				Conditions: registration.Conditions(registration.Condition("annotation-of-fairlead-changed", annotationChanged)),
			},
			Cluster: rights(readRollout(), readRequest()), Here: readRolloutHere(),
			rule: func(s served) named {
				return when(s.longhorn.Duties.ServesVolumeNetworks(), s.longhorn.volumeNetworks(s.use))
			},
		},
		{
			// A stray setting is useless, and does no harm.
			Part: PartLonghorn, For: "`settings.fairlead.io` in other namespaces, when created or when the value changes", Down: "stored, and without effect",
			Entry: registration.Entry{
				Path: registration.StraySettingsPath, Namespaces: registration.NotInNamespaces(registration.Namespace, metav1.NamespaceSystem, n.Namespace),
				Rules:      registration.Rules(registration.Written(own.Group, own.Version, "settings")),
				Conditions: registration.Conditions(registration.Condition("created-or-value-changed", "request.operation == 'CREATE' || object.?value != oldObject.?value")),
			},
			rule: func(s served) named { return when(s.longhorn.checksSettings(), s.longhorn.straySettings()) },
		},
	}
}

// Groups of settings: of the storage system, and Fairlead's own.
var system, own = longhorn.GroupVersion, v1alpha1.GroupVersion

// settingsOf is the entry of settings. It fails closed: an unchecked setting can do harm.
func settingsOf(n longhorn.Names) registration.Entry {
	// AutoCleanup may contradict a setting of the danger zone.
	all, judged := names(catalog.All()), names(append(catalog.DangerZone(), catalog.Definition{Name: catalog.AutoCleanup}))
	return registration.Entry{
		Path: registration.ValidatePath(registration.EntrySettings), Namespaces: registration.InNamespace(n.Namespace), FailClosed: true,
		Rules: registration.Rules(registration.Changed(system.Group, system.Version, "settings"), registration.Changed(own.Group, own.Version, "settings")),
		Conditions: registration.Conditions(
			// The object's name: the request of a deletecollection has none.
			registration.Condition("a-setting-that-fairlead-judges", "request.resource.group == 'fairlead.io' || "+
				"(request.operation == 'DELETE' ? oldObject.metadata.name : object.metadata.name) in "+judged),
			registration.Condition("value-changed", "request.operation != 'UPDATE' || (has(object.value) != has(oldObject.value)) || (has(object.value) && object.value != oldObject.value)"),
			// A namespace, or all of a kind, going away must not wait for Fairlead.
			registration.Condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
			// At its start, longhorn-manager deletes settings that its version has replaced. It does not start if it can't.
			registration.Condition("not-a-replaced-one", "!(request.operation == 'DELETE' && request.resource.group != 'fairlead.io' && oldObject.metadata.name in "+names(replaced())+")"),
			// The controller creates Fairlead's own settings without a value.
			registration.Condition("not-an-empty-one", "!(request.operation == 'CREATE' && request.resource.group == 'fairlead.io' && !has(object.value) && object.metadata.name in "+all+")"),
			// At its start, longhorn-manager creates missing settings with their defaults. It does not start if it can't.
			registration.Condition("not-a-default", fmt.Sprintf(
				"!(request.operation == 'CREATE' && request.resource.group != 'fairlead.io' && has(object.value) && object.metadata.name in %[1]s && object.value in %[1]s[object.metadata.name])", defaults())),
			// At its start, longhorn-manager creates settings also with values of older settings (endpoint-network-for-rwx-volume,
			// from 1.11) and of its ConfigMap of default settings. It does not start if it can't. Changes made in its UI are
			// updates by the same account, and are checked.
			registration.Condition("not-created-by-the-storage-system", fmt.Sprintf(
				"!(request.operation == 'CREATE' && request.resource.group != 'fairlead.io' && request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':%s')", n.ServiceAccount)),
		),
	}
}

// replaced are the settings that a later version of the storage system no longer has.
func replaced() []catalog.Definition {
	return slices.DeleteFunc(catalog.DangerZone(), func(d catalog.Definition) bool { return d.Until == "" })
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
	var list []catalog.Name
	for _, d := range definitions {
		list = append(list, d.Name)
	}
	return registration.Quoted(list...)
}

// annotationChanged, in CEL: an annotation with Fairlead's prefix is added, changed or removed. Misspelled annotations
// count: they cause warnings.
const annotationChanged = "object.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"(request.operation != 'UPDATE' || object.metadata.?annotations[?a] != oldObject.metadata.?annotations[?a])) || " +
	"request.operation == 'UPDATE' && oldObject.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"!object.metadata.?annotations[?a].hasValue())"

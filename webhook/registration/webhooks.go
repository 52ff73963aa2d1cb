package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"

	"github.com/fairlead-io/fairlead/validators"
)

// Entries are what the API server asks for Longhorn: those in its namespace, and those of networks, volumes and stray settings.
func Entries(n longhorn.Names) []Entry {
	return append(entriesIn(n), Entry{
		Path: NetworksPath, Namespaces: notInNamespaces(Namespace),
		Rules: rules(on("k8s.cni.cncf.io", "v1", "network-attachment-definitions", admissionregistrationv1.Update, admissionregistrationv1.Delete)),
		Conditions: conditions(
			condition("config-changed-or-deleted", "request.operation == 'DELETE' || object.?spec.?config.orValue('') != oldObject.?spec.?config.orValue('')"),
			condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
		),
	}, Entry{
		// Claims are in every namespace and must not wait. So the entry fails open, and the API server calls it only if
		// an annotation of Fairlead's changes.
		Path: VolumeNetworksPath, Namespaces: notInNamespaces(Namespace, metav1.NamespaceSystem),
		Rules: rules(
			written("", "v1", "persistentvolumeclaims"), ofCluster(written("", "v1", "persistentvolumes")),
			ofCluster(written("storage.k8s.io", "v1", "storageclasses")),
		),
		Conditions: conditions(condition("annotation-of-fairlead-changed", annotationChanged)),
	}, Entry{
		// A stray setting is useless, and does no harm.
		Path: StraySettingsPath, Namespaces: notInNamespaces(Namespace, metav1.NamespaceSystem, n.Namespace),
		Rules:      rules(written(own.Group, own.Version, "settings")),
		Conditions: conditions(condition("created-or-value-changed", "request.operation == 'CREATE' || object.?value != oldObject.?value")),
	})
}

// Groups of settings: of the storage system, and Fairlead's own.
var system, own = longhorn.GroupVersion, v1alpha1.GroupVersion

// entriesIn are the entries in Longhorn's namespace. The mutating ones fail open: the controller repairs.
func entriesIn(n longhorn.Names) []Entry {
	here := inNamespace(n.Namespace)
	mutate := func(entry string, rule admissionregistrationv1.RuleWithOperations, objects *metav1.LabelSelector, conditions ...admissionregistrationv1.MatchCondition) Entry {
		return Entry{Path: MutatePath(entry), Rules: rules(rule), Namespaces: here, Objects: objects, Conditions: conditions}
	}
	notFairlead := condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", ControllerUser))
	return []Entry{
		mutate(EntryClientPods, created("", "v1", "pods"), labels(n.ClientLabels)),
		mutate(EntryServerPods, created("", "v1", "pods"), labels(n.ServerLabels)),
		// Longhorn gives this DaemonSet no label: only its name identifies it.
		mutate(EntryClientTemplate, written("apps", "v1", "daemonsets"), nil,
			condition("the-client-daemonset", fmt.Sprintf("request.name == %q", n.ClientDaemonSet)), notFairlead),
		mutate(EntryServices, created("", "v1", "services"), &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: n.VolumeLabel, Operator: metav1.LabelSelectorOpExists}},
		}),
		mutate(EntryShareManagers, on(system.Group, system.Version, "sharemanagers/status", admissionregistrationv1.Update), nil,
			condition("has-an-endpoint", "has(object.status) && has(object.status.endpoint) && object.status.endpoint != ''")),
		mutate(EntrySettingStatus, on(system.Group, system.Version, "settings/status", admissionregistrationv1.Update), nil,
			condition("chooses-the-network-for-rwx-volumes", "object.metadata.name in "+names(catalog.ChooseSharedNetwork())),
			condition("turns-applied", "has(object.status) && object.status.applied && !(has(oldObject.status) && has(oldObject.status.applied) && oldObject.status.applied)"),
			notFairlead),
		settingsOf(n),
		{
			// For deletions of Ready pods by the storage system itself: evictions are no deletions, and administrators and
			// Kubernetes' controllers have other accounts. A pod must never wait for Fairlead, so the entry fails open.
			Path: ValidatePath(EntryInstanceManagerDeletions), Timeout: deleteTimeout,
			Rules: rules(on("", "v1", "pods", admissionregistrationv1.Delete)), Namespaces: here, Objects: labels(n.InstanceManagerLabels),
			Conditions: conditions(
				condition("by-the-storage-system", fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':%s'", n.ServiceAccount)),
				condition("of-a-pod-that-works", "!has(oldObject.metadata.deletionTimestamp) && oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"),
			),
		},
	}
}

// settingsOf is the entry of settings. It fails closed: an unchecked setting can do harm.
func settingsOf(n longhorn.Names) Entry {
	// AutoCleanup may contradict a setting of the danger zone.
	all, judged := names(catalog.All()), names(append(catalog.DangerZone(), catalog.Definition{Name: catalog.AutoCleanup}))
	return Entry{
		Path: ValidatePath(EntrySettings), Namespaces: inNamespace(n.Namespace), FailClosed: true,
		Rules: rules(changed(system.Group, system.Version, "settings"), changed(own.Group, own.Version, "settings")),
		Conditions: conditions(
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
			// At its start, longhorn-manager creates missing settings with their defaults. It does not start if it can't.
			condition("not-a-default", fmt.Sprintf(
				"!(request.operation == 'CREATE' && request.resource.group != 'fairlead.io' && has(object.value) && object.metadata.name in %[1]s && object.value in %[1]s[object.metadata.name])", defaults())),
			// At its start, longhorn-manager creates settings also with values of older settings (endpoint-network-for-rwx-volume,
			// from 1.11) and of its ConfigMap of default settings. It does not start if it can't. Changes made in its UI are
			// updates by the same account, and are checked.
			condition("not-created-by-the-storage-system", fmt.Sprintf(
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
	return quoted(list...)
}

// annotationChanged, in CEL: an annotation with Fairlead's prefix is added, changed or removed. Misspelled annotations
// count: they cause warnings.
const annotationChanged = "object.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"(request.operation != 'UPDATE' || object.metadata.?annotations[?a] != oldObject.metadata.?annotations[?a])) || " +
	"request.operation == 'UPDATE' && oldObject.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"!object.metadata.?annotations[?a].hasValue())"

// NFSDrivers are the drivers of the installed entries: Fairlead's own and the GKE driver. The rules allow volumes of
// drivers that the configuration does not name. For another driver, patch the condition of-an-nfs-driver as in
// manifests/components/nfs/kustomization.yaml.
func NFSDrivers() []string { return []string{csi.DefaultDriver, volume.GKEDriver} }

// NFSEntries are the entries of NFS services. Only clusters with NFS services install them. All fail open: the controller
// and the node plugin check PersistentVolumes and NFSServices again by the same functions.
func NFSEntries(drivers []string) []Entry {
	ofDriver := condition("of-an-nfs-driver", "object.?spec.?csi.?driver.orValue('') in "+quoted(drivers...))
	return []Entry{
		{
			Path: NFSVolumeOptionsPath, Rules: rules(ofCluster(created("", "v1", "persistentvolumes"))),
			Conditions: conditions(ofDriver),
		},
		{
			Path: NFSServicesPath, Rules: rules(changed(own.Group, own.Version, "nfsservices")),
			Namespaces: notInNamespaces(Namespace, metav1.NamespaceSystem),
			Conditions: conditions(
				condition("created-changed-or-deleted", "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"),
				condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
			),
		},
		{
			Path: NFSVolumesPath, Rules: rules(ofCluster(written("", "v1", "persistentvolumes"))), Timeout: mutateTimeout,
			Conditions: conditions(
				ofDriver,
				// Not for changes of binding, phase and finalizers.
				condition("created-or-mounted-otherwise", "request.operation == 'CREATE' || object.?spec.?mountOptions != oldObject.?spec.?mountOptions || object.?spec.?csi != oldObject.?spec.?csi"),
			),
		},
	}
}

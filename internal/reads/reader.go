// Package reads reads the cluster: it gathers the facts that rules and plans
// need. The same reader serves caches and live reads. Decisions that deny or
// disrupt read live.
package reads

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/describe"
)

// Reader gathers facts about Longhorn.
type Reader struct {
	names   longhorn.Names
	objects client.Reader
	// provisioned may be a cache even if objects is live: the fields that gates read of a
	// PersistentVolume (driver, handle, access modes) never change, and no gate depends
	// on annotations.
	provisioned client.Reader
}

// NewReader returns a reader over a cache or, for decisions that deny or
// disrupt, over the API server.
func NewReader(names longhorn.Names, objects, provisioned client.Reader) *Reader {
	return &Reader{names, objects, provisioned}
}

// Values reads the values of Fairlead's own settings and of the storage system's
// settings. A storage system that is not installed has no values.
func (r *Reader) Values(ctx context.Context) (own, system map[catalog.Name]string, err error) {
	ours, theirs, err := r.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	own, system = describe.Values(ours, theirs)
	return own, system, nil
}

// SettingStates reads the states of the catalog's settings, in the catalog's order, and the
// names of the storage system's settings that Fairlead does not know.
func (r *Reader) SettingStates(ctx context.Context) ([]describe.State, []catalog.Name, error) {
	ours, theirs, err := r.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	states, unknown := describe.States(ours, theirs)
	return states, unknown, nil
}

// settings lists Fairlead's own settings and those of the storage system, for reading only.
func (r *Reader) settings(ctx context.Context) (ours []v1alpha1.Setting, theirs []longhorn.Setting, _ error) {
	var own v1alpha1.SettingList
	if err := r.listHere(ctx, &own, "settings.fairlead.io"); err != nil {
		return nil, nil, err
	}
	var system longhorn.SettingList
	if err := r.listHere(ctx, &system, "settings."+longhorn.GroupVersion.Group); err != nil {
		return nil, nil, err
	}
	return own.Items, system.Items, nil
}

// NetworkKind is the kind that Multus reads networks from.
var NetworkKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// networksTimeout limits the list of networks. A cache that can't list them would wait without end.
const networksTimeout = 5 * time.Second

// Networks returns the NetworkAttachmentDefinitions of the cluster, and whether CNI can read the config of each. Without Multus
// there are none.
func Networks(ctx context.Context, objects client.Reader) (map[multus.Network]bool, error) {
	configs, err := NetworkConfigs(ctx, objects)
	if err != nil {
		return nil, err
	}
	return readable(configs), nil
}

func readable(configs map[multus.Network]string) map[multus.Network]bool {
	networks := make(map[multus.Network]bool, len(configs))
	for n, config := range configs {
		networks[n] = multus.IsCNI(config)
	}
	return networks
}

// NetworkConfigs are the CNI configurations of all networks.
func NetworkConfigs(ctx context.Context, objects client.Reader) (map[multus.Network]string, error) {
	ctx, cancel := context.WithTimeout(ctx, networksTimeout)
	defer cancel()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(NetworkKind.GroupVersion().WithKind(NetworkKind.Kind + "List"))
	if err := objects.List(ctx, &list); err != nil && !lists.NotInstalled(err) {
		return nil, fmt.Errorf("listing NetworkAttachmentDefinitions: %w", err)
	}
	configs := make(map[multus.Network]string, len(list.Items))
	for i := range list.Items {
		configs[multus.Network{Namespace: list.Items[i].GetNamespace(), Name: list.Items[i].GetName()}] = NetworkConfig(&list.Items[i])
	}
	return configs, nil
}

// NetworkConfig is the CNI configuration of a NetworkAttachmentDefinition.
func NetworkConfig(definition *unstructured.Unstructured) string {
	config, _, _ := unstructured.NestedString(definition.Object, "spec", "config")
	return config
}

// Version returns the version that the storage system reports; "" if none.
func (r *Reader) Version(ctx context.Context) (string, error) {
	var s longhorn.Setting
	err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: string(catalog.SystemVersion)}, &s)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version of the storage system: %w", err)
	}
	return s.Value, nil
}

// DefaultSettings are the values that the storage system writes into its settings at each start, by name. Without the
// ConfigMap, or the right to read it, there are none: they are for warnings only.
func (r *Reader) DefaultSettings(ctx context.Context) map[string]string {
	var given corev1.ConfigMap
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: r.names.DefaultSettings}, &given); err != nil {
		return nil
	}
	return longhorn.ParseDefaultSettings(given.Data[longhorn.DefaultSettingsKey])
}

// NewScheme returns a scheme of the kinds that Fairlead reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, discoveryv1.AddToScheme, policyv1.AddToScheme, eventsv1.AddToScheme, schedulingv1.AddToScheme, coordinationv1.AddToScheme,
		metav1.AddMetaToScheme, v1alpha1.AddToScheme, longhorn.AddToScheme, csiaddons.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

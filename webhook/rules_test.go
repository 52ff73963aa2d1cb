package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

func TestMutations(t *testing.T) {
	const (
		networks = `{"k8s.v1.cni.cncf.io/networks":"[{\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]"}`
		added    = `[{"op":"add","path":"/metadata/annotations","value":` + networks + `}]`
		create   = `"namespace":"longhorn-system","operation":"CREATE","object":`
		template = `"name":"longhorn-csi-plugin",` + create + `{"spec":{"template":{"metadata":{}}}}`
		onHost   = "on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1"
	)
	headless, clusterIP := objects.Headless("pvc-a", storageNet), objects.Headless("pvc-a", storageNet, onClusterIP)
	running := objects.ServerPod("pvc-a", func(p *corev1.Pod) { p.Annotations = nil })
	server := reviews.Of(reviews.Pod, create+`{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}}}`)
	service := reviews.Of(reviews.Service, create+`{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP"}}`)
	endpoint := reviews.Of(reviews.ShareManager, `"subResource":"status","namespace":"longhorn-system","operation":"UPDATE","object":{"metadata":{"name":"pvc-a"},"status":{"endpoint":"nfs://None/pvc-a"}}`)
	attached := onNetwork(append(networkSettings(), attachedVolume("pvc-a"))...)
	for name, test := range map[string]struct {
		path, review string
		objects      []client.Object
		patch, audit string
		warnings     []string
	}{
		"client pod": {clientPodsPath, podReview(`{"metadata":{"name":"csi-1"}}`), onNetwork(), added,
			"mutated: network added (kube-system/storage-net@lhnet1: recorded for clients)", nil},
		"client pod on the network": {clientPodsPath, podReview(`{"metadata":{"annotations":` + networks + `}}`), onNetwork(), "", "", nil},
		"client pod, no record":     {clientPodsPath, podReview(`{"metadata":{"name":"csi-1"}}`), nil, "", "", nil},
		"client pod on the host network": {clientPodsPath, podReview(`{"metadata":{},"spec":{"hostNetwork":true}}`), onNetwork(), "",
			"skipped: " + strings.Replace(onHost, ": ", " (", 1) + ")", []string{"fairlead: " + onHost}},
		"client template": {clientTemplatePath, reviews.Of(reviews.DaemonSet, template), onNetwork(),
			`[{"op":"add","path":"/spec/template/metadata/annotations","value":` + networks + `}]`,
			"mutated: network added (kube-system/storage-net@lhnet1: recorded for clients)", nil},
		"client template, no record": {clientTemplatePath, reviews.Of(reviews.DaemonSet, template), nil, "", "", nil},
		"server pod follows its Service": {serverPodsPath, server, []client.Object{headless}, added,
			"mutated: network added (kube-system/storage-net@lhnet1: recorded by Service pvc-a)", nil},
		"server pod of a Service with a cluster IP": {serverPodsPath, server, onNetwork(clusterIP), "", "", nil},
		"server pod without a Service": {serverPodsPath, server, onNetwork(), added,
			"mutated: network added (kube-system/storage-net@lhnet1: recorded for servers; the volume has no Service yet)", nil},
		"Service": {servicesPath, service, onNetwork(),
			`[{"op":"add","path":"/metadata/annotations","value":{"fairlead.io/network":"kube-system/storage-net@lhnet1"}},{"op":"add","path":"/spec/clusterIP","value":"None"}]`,
			"mutated: made headless (kube-system/storage-net@lhnet1: new servers use the network)", nil},
		"Service of a server on the cluster network": {servicesPath, service, onNetwork(running), "", "", nil},
		"share manager": {shareManagersPath, endpoint, []client.Object{headless}, `[{"op":"replace","path":"/status/endpoint","value":"nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a"}]`,
			"mutated: endpoint follows the Service (nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a instead of nfs://None/pvc-a)", nil},
		"applied setting, volume on a cluster IP": {settingStatusPath, statusReview(), append(slices.Clone(attached), clusterIP), `[{"op":"replace","path":"/status/applied","value":false}]`,
			"mutated: not applied yet (volume pvc-a is attached and has a cluster IP)", nil},
		"applied setting": {settingStatusPath, statusReview(), append(slices.Clone(attached), headless), "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, test.path, test.review)
			must.Check(t, response.Allowed && response.UID == reviews.UID && response.Result == nil, "got %+v", response)
			must.Equal(t, string(response.Patch), test.patch, "patch")
			must.Equal(t, response.AuditAnnotations["decision"], test.audit, "audit")
			must.Equal(t, response.Warnings, test.warnings, "warnings")
		})
	}
}

// The API server prints this as `The settings "storage-network" is invalid: value: …`.
func TestDenialLooksLikeValidationErrorOfAPIServer(t *testing.T) {
	response := newRig(t, fakeClient(t, onNetwork()...)).ask(t, settingsPath,
		settingReview(reviews.SystemSetting, "UPDATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":"kube-system"}`))
	const problem = `must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`
	want := &metav1.Status{
		Status: "Failure", Code: 422, Reason: "Invalid",
		Message: `settings.longhorn.io "storage-network" is invalid: value: Invalid value: "kube-system": ` + problem,
		Details: &metav1.StatusDetails{
			Group: "longhorn.io", Kind: "settings", Name: "storage-network",
			Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Field: "value", Message: `Invalid value: "kube-system": ` + problem}},
		},
	}
	must.True(t, !response.Allowed && response.UID == "the-uid" && reflect.DeepEqual(response.Result, want), "got  %+v\nwant %+v", response.Result, want)
	if got, want := response.AuditAnnotations["decision"], `denied: invalid value (value: Invalid value: "kube-system": `+problem+`)`; got != want {
		t.Fatalf("audit: got %s, want %s", got, want)
	}
}

func TestPendingSettingIsAcceptedAndNamesBlockers(t *testing.T) {
	stored := []client.Object{
		clientDaemonSet(), network("kube-system", "storage-net"), clientPod("csi-1"), clientPod("csi-2"), clientPod("csi-3"),
		attachedVolume("pvc-117d3553"), objects.Lease(time.Now()),
	}
	h := newRig(t, fakeClient(t, stored...))
	response := h.ask(t, settingsPath,
		settingReview(reviews.Setting, "UPDATE", "endpoint-network-for-rwx-volume", `{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":"kube-system/storage-net"}`))
	want := []string{"accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-1, pod default/web-0). Then 3 CSI plugin pods restart."}
	must.True(t, response.Allowed && slices.Equal(response.Warnings, want), "got %+v", response)
}

func TestValueLostAtLonghornsNextStartGetsWarning(t *testing.T) {
	defaults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "longhorn-default-setting"}, Data: map[string]string{"default-setting.yaml": "guaranteed-instance-manager-cpu: 20"}}
	response := newRig(t, fakeClient(t, defaults, objects.LonghornSetting("guaranteed-instance-manager-cpu", "12"))).ask(t, settingsPath,
		settingReview(reviews.SystemSetting, "UPDATE", "guaranteed-instance-manager-cpu", `{"metadata":{"name":"guaranteed-instance-manager-cpu"},"value":"15"},"oldObject":{"metadata":{"name":"guaranteed-instance-manager-cpu"},"value":"12"}`))
	must.True(t, response.Allowed && strings.Contains(fmt.Sprint(response.Warnings), `sets guaranteed-instance-manager-cpu to "20" again`), "got %+v", response)
}

// deletion is one of many at once (deletecollection): the request has no name.
func deletion(kind string) string {
	return reviews.Of(kind, `"resource":{"group":"","version":"","resource":"settings"},"namespace":"longhorn-system","name":"","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"storage-network"}}`)
}

func TestSettingDeletion(t *testing.T) {
	h := newRig(t, fakeClient(t))
	response := h.ask(t, settingsPath, deletion(reviews.SystemSetting))
	must.Check(t, !response.Allowed && response.Result.Code == 422 && response.Result.Details.Causes[0].Field == "metadata.name", "Longhorn's: got %+v", response.Result)
	must.Check(t, h.ask(t, settingsPath, deletion(reviews.Setting)).Allowed, "Fairlead's own is refused")
}

func TestSettingsOfOtherNamespacesAreNotJudged(t *testing.T) {
	response := newRig(t, fakeClient(t)).ask(t, settingsPath,
		reviews.Of(reviews.Setting, `"namespace":"default","name":"x","operation":"CREATE","object":{"metadata":{"name":"x"},"value":"y"}`))
	must.True(t, response.Allowed && response.Warnings == nil, "got %+v", response)
}

func TestNetworkInUse(t *testing.T) {
	review := reviews.Of(reviews.Network, `"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},"namespace":"kube-system","name":"storage-net","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"storage-net"}}`)
	pod := clientPod("csi-1")
	pod.SetAnnotations(map[string]string{"k8s.v1.cni.cncf.io/networks": storageNet.String()})
	const used = "network kube-system/storage-net is in use by Longhorn: 1 CSI plugin pod; pods that request the network do not start until it is created again"
	response := newRig(t, fakeClient(t, pod)).ask(t, registration.NetworksPath, review)
	must.Check(t, response.Allowed && slices.Equal(response.Warnings, []string{used}), "Warn: got %+v", response)
	response = newRig(t, fakeClient(t, pod), func(l *Longhorn) { l.InUse = settings.Refuse }).ask(t, registration.NetworksPath, review)
	must.Check(t, !response.Allowed && response.Result.Code == 422 && response.Result.Details.Kind == "network-attachment-definitions", "Refuse: got %+v", response)
}

func TestUnreadableFacts(t *testing.T) {
	h := newRig(t, unreadable(fakeClient(t)))
	t.Run("a setting is refused", func(t *testing.T) {
		response := h.ask(t, settingsPath, settingReview(reviews.SystemSetting, "UPDATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":""},"oldObject":{"metadata":{"name":"storage-network"},"value":"kube-system/storage-net"}`))
		const want = "fairlead can't judge this change now (listing settings.fairlead.io: the API server is down); nothing was changed, try again"
		must.True(t, !response.Allowed && response.Result.Code == 503 && response.Result.Reason == "ServiceUnavailable" && response.Result.Message == want,
			"got %+v", response.Result)
	})
	t.Run("the failure policy decides the rest", func(t *testing.T) {
		for path, review := range reviewsOfEveryPath() {
			status, _ := h.post(path, review)
			// Those that refuse by themselves, and those that need no facts.
			others := []string{clientPodsPath, settingsPath, registration.AttachmentsPath, registration.AttachmentMarksPath, registration.NodeFenceOverridesPath, registration.NodeFencesPath, registration.StraySettingsPath, registration.NFSServicesPath}
			reads := !slices.Contains(others, path)
			must.Check(t, !reads || status == http.StatusInternalServerError, "%s: got %d", path, status)
		}
	})
}

// reviewsOfEveryPath has one good review for each rule.
func reviewsOfEveryPath() map[string]string {
	create := `"namespace":"longhorn-system","name":"pvc-a","operation":"CREATE","object":{"metadata":{"name":"pvc-a","labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"template":{"metadata":{}}},"status":{"endpoint":"nfs://None/pvc-a"}}`
	return map[string]string{
		clientPodsPath:                      reviews.Of(reviews.Pod, create),
		serverPodsPath:                      reviews.Of(reviews.Pod, create),
		clientTemplatePath:                  reviews.Of(reviews.DaemonSet, `"namespace":"longhorn-system","name":"longhorn-csi-plugin","operation":"CREATE","object":{"metadata":{},"spec":{"template":{"metadata":{}}}}`),
		servicesPath:                        reviews.Of(reviews.Service, create),
		shareManagersPath:                   reviews.Of(reviews.ShareManager, create),
		settingsPath:                        settingReview(reviews.SystemSetting, "CREATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":"x"}`),
		settingStatusPath:                   statusReview(),
		registration.StraySettingsPath:      strayReview("default"),
		registration.NetworksPath:           reviews.Of(reviews.Network, create),
		deletionsPath:                       deletionReview("True"),
		registration.VolumeNetworksPath:     reviews.Of(reviews.Claim, `"namespace":"default","name":"data","operation":"CREATE","object":{"metadata":{"name":"data","annotations":{"fairlead.io/volume-network":"nfs"}}}`),
		registration.AttachmentMarksPath:    attachmentReview("pv-a", "node-2"),
		registration.AttachmentsPath:        attachmentReview("pv-a", "node-2"),
		registration.NodesPath:              reviews.Of(reviews.Node, `"name":"node-1","operation":"UPDATE","object":{"metadata":{"name":"node-1"},"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service"}]}},"oldObject":{"metadata":{"name":"node-1"}}`),
		registration.NodeFenceOverridesPath: reviews.Of(reviews.NodeFence, `"name":"node-1","operation":"CREATE","object":{"metadata":{"name":"node-1"}}`),
		registration.NodeFencesPath:         reviews.Of(reviews.NodeFence, `"name":"node-1","operation":"CREATE","object":{"metadata":{"name":"node-1"}}`),
		registration.NFSServicesPath:        nfsServiceReview("CREATE", `{"backends":[{"address":"x"}]}`, ""),
		registration.NFSVolumesPath:         nfsVolumeReview("nfs.lb.csi.storage.gke.io", `{"share":"x"}`, ""),
		registration.NFSVolumeOptionsPath:   nfsVolumeReview("nfs.lb.csi.storage.gke.io", `{"share":"/x"}`, ""),
	}
}

// statusReview is Longhorn writing that its setting is applied.
func statusReview() string {
	return reviews.Of(reviews.SystemSetting, `"subResource":"status","namespace":"longhorn-system","name":"storage-network-for-rwx-volume-enabled","operation":"UPDATE","object":{"metadata":{"name":"storage-network-for-rwx-volume-enabled"},"status":{"applied":true}},"oldObject":{"status":{"applied":false}}`)
}

func TestDryRunDecidesTheSameAndWritesNothing(t *testing.T) {
	for path, review := range reviewsOfEveryPath() {
		h := newRig(t, readOnly{fakeClient(t, onNetwork()...)})
		dry := h.ask(t, path, review[:len(review)-2]+`,"dryRun":true}}`)
		wet := h.ask(t, path, review)
		must.Check(t, reflect.DeepEqual(dry, wet), "%s: dry %+v, else %+v", path, dry, wet)
	}
}

// readOnly has no way to write.
type readOnly struct{ client.Reader }

func TestDutyThatIsOffAllowsEverything(t *testing.T) {
	off := func(p *Longhorn) {
		p.Duties = config.Duties{Settings: config.Off, Pods: config.Off, Services: config.Off, Networks: config.Off}
		p.Live, p.Record = nil, nil // nothing is read
	}
	h := newRig(t, fakeClient(t), off)
	for path, review := range reviewsOfEveryPath() {
		if slices.Contains(fencingPaths, path) || slices.Contains(nfsPaths, path) {
			continue // see TestAttachmentIsMarkedEvenIfFencingIsOff, TestNFSRulesAreOffWithoutDrivers
		}
		response := h.ask(t, path, review)
		must.Check(t, response.Allowed && response.Patch == nil && response.Warnings == nil && response.UID == "the-uid", "%s: got %+v", path, response)
	}
}

// fencingPaths are switched by no duty of a profile.
var fencingPaths = []string{registration.AttachmentMarksPath, registration.AttachmentsPath, registration.NodesPath, registration.NodeFenceOverridesPath, registration.NodeFencesPath}

// nfsPaths are switched by the drivers that are served.
var nfsPaths = []string{registration.NFSServicesPath, registration.NFSVolumesPath, registration.NFSVolumeOptionsPath}

func TestEachDutySwitchesItsOwnRules(t *testing.T) {
	rulesOf := map[string]struct {
		off   func(*config.Duties)
		paths []string
	}{
		"pods":     {func(d *config.Duties) { d.Pods = config.Off }, []string{clientPodsPath, serverPodsPath, clientTemplatePath}},
		"services": {func(d *config.Duties) { d.Services = config.Off }, []string{servicesPath, shareManagersPath}},
		// Without a roll-out of the default network, per-volume networks are not rolled out.
		"settings": {func(d *config.Duties) { d.Settings = config.Off }, []string{settingsPath, registration.VolumeNetworksPath, registration.StraySettingsPath, deletionsPath, settingStatusPath, clientPodsPath, clientTemplatePath}},
		// With guard, the storage system builds components and clients.
		"applying settings": {func(d *config.Duties) { d.Settings = config.Guard }, []string{registration.VolumeNetworksPath, settingStatusPath, clientPodsPath, clientTemplatePath}},
		"volumeNetworks":    {func(d *config.Duties) { d.VolumeNetworks = config.Off }, []string{registration.VolumeNetworksPath}},
	}
	for duty, test := range rulesOf {
		objects := slices.Concat(onNetwork(), serving(), networkSettings(), []client.Object{
			objects.LonghornSetting("taint-toleration", "a:NoSchedule"), attachedVolume("pvc-b"), objects.Headless("pvc-b", storageNet, onClusterIP),
		})
		h := newRig(t, fakeClient(t, objects...), func(p *Longhorn) { test.off(&p.Duties) })
		byPath := reviewsOfEveryPath()
		for _, path := range slices.Sorted(maps.Keys(byPath)) {
			if slices.Contains(fencingPaths, path) || slices.Contains(nfsPaths, path) {
				continue
			}
			response := h.ask(t, path, byPath[path])
			acts := response.Patch != nil || !response.Allowed
			off := slices.Contains(test.paths, path)
			must.Check(t, acts != off || path == registration.NetworksPath, "%s off, %s: got %+v", duty, path, response)
		}
	}
}

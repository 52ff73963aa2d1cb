package webhook

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/config"
)

func TestMutations(t *testing.T) {
	const networks = `"[{\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]"`
	annotated := `{"k8s.v1.cni.cncf.io/networks":` + networks + `}`
	headless := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "pvc-a", Labels: map[string]string{"longhorn.io/share-manager": "pvc-a"}, Annotations: map[string]string{"fairlead.io/network": storageNet.String()}},
		Spec:       corev1.ServiceSpec{ClusterIP: "None"},
	}
	onClusterIP := headless.DeepCopy()
	onClusterIP.Spec.ClusterIP = "10.43.0.9"
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "share-manager-pvc-a", Labels: map[string]string{
		"longhorn.io/share-manager": "pvc-a", "longhorn.io/component": "share-manager", "longhorn.io/managed-by": "longhorn-manager",
	}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "pvc-a", Controller: ptr.To(true)}}}}
	create := `"namespace":"longhorn-system","operation":"CREATE","object":`
	server := reviewOf(podKind, create+`{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}}}`)
	for name, test := range map[string]struct {
		path, review string
		objects      []client.Object
		patch, audit string
		warnings     []string
	}{
		"client pod": {
			path: clientPodsPath, review: podReview(`{"metadata":{"name":"csi-1"}}`),
			patch: `[{"op":"add","path":"/metadata/annotations","value":` + annotated + `}]`,
			audit: "mutated: network added (kube-system/storage-net@lhnet1: the record of clients says so)",
		},
		"client pod as it should be": {
			path: clientPodsPath, review: podReview(`{"metadata":{"annotations":` + annotated + `}}`),
		},
		"client pod on the host network": {
			path: clientPodsPath, review: podReview(`{"metadata":{},"spec":{"hostNetwork":true}}`),
			audit:    "skipped: on the host network (Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1)",
			warnings: []string{"fairlead: left as it is, on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/storage-net@lhnet1"},
		},
		"client template": {
			path: "/mutate/longhorn/client-template", review: reviewOf(daemonSetKind, create+`{"spec":{"template":{"metadata":{}}}}`), objects: onNetwork(),
			patch: `[{"op":"add","path":"/spec/template/metadata/annotations","value":` + annotated + `}]`,
			audit: "mutated: network added (kube-system/storage-net@lhnet1: the record of clients says so)",
		},
		"client template, nothing recorded yet": {
			path: "/mutate/longhorn/client-template", review: reviewOf(daemonSetKind, create+`{"spec":{"template":{"metadata":{}}}}`),
		},
		"server pod by its Service": {
			path: "/mutate/longhorn/server-pods", review: server, objects: []client.Object{headless},
			patch: `[{"op":"add","path":"/metadata/annotations","value":` + annotated + `}]`,
			audit: "mutated: network added (kube-system/storage-net@lhnet1: Service pvc-a has it recorded)",
		},
		"server pod of a Service with an address": {
			path: "/mutate/longhorn/server-pods", review: server, objects: append(onNetwork(), onClusterIP),
		},
		"server pod without a Service": {
			path: "/mutate/longhorn/server-pods", review: server, objects: onNetwork(),
			patch: `[{"op":"add","path":"/metadata/annotations","value":` + annotated + `}]`,
			audit: "mutated: network added (kube-system/storage-net@lhnet1: the record of servers says so, and the volume has no Service yet)",
		},
		"service": {
			path: "/mutate/longhorn/services", review: reviewOf(serviceKind, create+`{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"type":"ClusterIP"}}`), objects: onNetwork(),
			patch: `[{"op":"add","path":"/metadata/annotations","value":{"fairlead.io/network":"kube-system/storage-net@lhnet1"}},{"op":"add","path":"/spec/clusterIP","value":"None"}]`,
			audit: "mutated: made headless (kube-system/storage-net@lhnet1: servers are on it)",
		},
		"service of a server that runs on the cluster network": {
			path: "/mutate/longhorn/services", review: reviewOf(serviceKind, create+`{"metadata":{"labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{}}`), objects: append(onNetwork(), running),
		},
		"share manager": {
			path: "/mutate/longhorn/sharemanagers", objects: []client.Object{headless},
			review: reviewOf(shareKind, `"subResource":"status","namespace":"longhorn-system","operation":"UPDATE","object":{"metadata":{"name":"pvc-a"},"status":{"endpoint":"nfs://None/pvc-a"}}`),
			patch:  `[{"op":"replace","path":"/status/endpoint","value":"nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a"}]`,
			audit:  "mutated: endpoint follows the Service (nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a instead of nfs://None/pvc-a)",
		},
		"setting that counts as applied while a volume has a cluster IP": {
			path: settingStatusPath, review: statusReview(),
			objects: append(onNetwork(), onClusterIP, setting("storage-network", "kube-system/storage-net"), setting("storage-network-for-rwx-volume-enabled", "true"), attachedVolume("pvc-a", "node-1", "web-0")),
			patch:   `[{"op":"replace","path":"/status/applied","value":false}]`,
			audit:   "mutated: not applied yet (volume pvc-a is attached and has a cluster IP)",
		},
		"setting that counts as applied": {
			path: settingStatusPath, review: statusReview(),
			objects: append(onNetwork(), headless, setting("storage-network", "kube-system/storage-net"), setting("storage-network-for-rwx-volume-enabled", "true"), attachedVolume("pvc-a", "node-1", "web-0")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, test.path, test.review)
			if !response.Allowed || response.UID != "the-uid" || response.Result != nil {
				t.Errorf("got %+v", response)
			}
			patch := ""
			if response.Patch != nil {
				patch = compact(t, response.Patch)
			}
			if patch != test.patch {
				t.Errorf("patch: got  %s\nwant %s", patch, test.patch)
			}
			if response.AuditAnnotations["decision"] != test.audit {
				t.Errorf("audit: got  %q\nwant %q", response.AuditAnnotations["decision"], test.audit)
			}
			if !slices.Equal(response.Warnings, test.warnings) {
				t.Errorf("warnings: got %q, want %q", response.Warnings, test.warnings)
			}
		})
	}
}

// The API server prints this as `The settings "storage-network" is invalid: value: …`.
func TestADenialIsAValidationErrorOfTheAPIServer(t *testing.T) {
	response := newRig(t, fakeClient(t, onNetwork()...)).ask(t, "/validate/longhorn/settings",
		settingReview(settingKind, "UPDATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":"kube-system"}`))
	const problem = `must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`
	want := &metav1.Status{
		Status: "Failure", Code: 422, Reason: "Invalid",
		Message: `settings.longhorn.io "storage-network" is invalid: value: Invalid value: "kube-system": ` + problem,
		Details: &metav1.StatusDetails{
			Group: "longhorn.io", Kind: "settings", Name: "storage-network",
			Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Field: "value", Message: `Invalid value: "kube-system": ` + problem}},
		},
	}
	if response.Allowed || response.UID != "the-uid" || !reflect.DeepEqual(response.Result, want) {
		t.Fatalf("got  %+v\nwant %+v", response.Result, want)
	}
	if got, want := response.AuditAnnotations["decision"], `denied: invalid value (value: Invalid value: "kube-system": `+problem+`)`; got != want {
		t.Fatalf("audit: got %s, want %s", got, want)
	}
}

func clientDaemonSet() client.Object {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "longhorn-csi-plugin"}}
}

func TestAPendingSettingIsAcceptedAndNamesItsBlockers(t *testing.T) {
	objects := []client.Object{
		clientDaemonSet(), network("kube-system", "storage-net"), clientPod("csi-1"), clientPod("csi-2"), clientPod("csi-3"),
		attachedVolume("pvc-117d3553", "node-2", "web-0"),
	}
	h := newRig(t, fakeClient(t, objects...))
	response := h.ask(t, "/validate/longhorn/settings",
		settingReview(ownKind, "UPDATE", "endpoint-network-for-rwx-volume", `{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":"kube-system/storage-net"}`))
	want := []string{"accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart."}
	if !response.Allowed || !slices.Equal(response.Warnings, want) {
		t.Fatalf("got %+v", response)
	}
}

// deletion is one of many at once (deletecollection): the request has no name.
func deletion(kind string) string {
	return reviewOf(kind, `"resource":{"group":"","version":"","resource":"settings"},"namespace":"longhorn-system","name":"","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"storage-network"}}`)
}

func TestSettingDeletionOverTheWire(t *testing.T) {
	h := newRig(t, fakeClient(t))
	response := h.ask(t, "/validate/longhorn/settings", deletion(settingKind))
	if response.Allowed || response.Result.Code != 422 || response.Result.Details.Causes[0].Field != "metadata.name" {
		t.Errorf("Longhorn's: got %+v", response.Result)
	}
	if response := h.ask(t, "/validate/longhorn/settings", deletion(ownKind)); !response.Allowed {
		t.Errorf("Fairlead's own: got %+v", response.Result)
	}
}

func TestSettingsOfOtherNamespacesAreNotJudged(t *testing.T) {
	response := newRig(t, fakeClient(t)).ask(t, "/validate/longhorn/settings",
		reviewOf(ownKind, `"namespace":"default","name":"x","operation":"CREATE","object":{"metadata":{"name":"x"},"value":"y"}`))
	if !response.Allowed || response.Warnings != nil {
		t.Fatalf("got %+v", response)
	}
}

func TestNetworkInUse(t *testing.T) {
	review := reviewOf(networkKind, `"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},"namespace":"kube-system","name":"storage-net","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"storage-net"}}`)
	pod := clientPod("csi-1")
	pod.SetAnnotations(map[string]string{"k8s.v1.cni.cncf.io/networks": storageNet.String()})
	const used = "network kube-system/storage-net is in use by longhorn: 1 CSI plugin pod; pods that ask for it do not start again until it is back"
	response := newRig(t, fakeClient(t, pod)).ask(t, networksPath, review)
	if !response.Allowed || !slices.Equal(response.Warnings, []string{used}) {
		t.Errorf("Warn: got %+v", response)
	}
	response = newRig(t, fakeClient(t, pod), func(c *config.Configuration, _ *Profile) { c.Networks.InUse = config.Refuse }).ask(t, networksPath, review)
	if response.Allowed || response.Result.Code != 422 || response.Result.Details.Kind != "network-attachment-definitions" {
		t.Errorf("Refuse: got %+v", response)
	}
}

func TestFactsUnavailable(t *testing.T) {
	down := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errDown
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errDown },
	})
	h := newRig(t, down)
	t.Run("a setting is refused, and trying again may help", func(t *testing.T) {
		response := h.ask(t, "/validate/longhorn/settings", settingReview(settingKind, "UPDATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":""}`))
		const want = "fairlead can't judge this change now (listing settings.fairlead.io: the API server is down); nothing was changed, try again"
		if response.Allowed || response.Result.Code != 503 || response.Result.Reason != "ServiceUnavailable" || response.Result.Message != want {
			t.Fatalf("got %+v", response.Result)
		}
	})
	t.Run("the failure policy rules the rest", func(t *testing.T) {
		for path, review := range reviewsOfEveryPath() {
			status, _ := h.post(path, review)
			// Those that refuse by themselves, and those that need no facts.
			others := []string{clientPodsPath, "/validate/longhorn/settings", attachmentsPath, attachmentMarksPath, nodeFenceOverridesPath, nodeFencesPath, straySettingsPath, nfsServicesPath}
			if reads := !slices.Contains(others, path); reads && status != http.StatusInternalServerError {
				t.Errorf("%s: got %d", path, status)
			}
		}
	})
}

var errDown = errors.New("the API server is down")

// reviewsOfEveryPath has one good review for each rule.
func reviewsOfEveryPath() map[string]string {
	create := `"namespace":"longhorn-system","name":"pvc-a","operation":"CREATE","object":{"metadata":{"name":"pvc-a","labels":{"longhorn.io/share-manager":"pvc-a"}},"spec":{"template":{"metadata":{}}},"status":{"endpoint":"nfs://None/pvc-a"}}`
	return map[string]string{
		clientPodsPath:                     reviewOf(podKind, create),
		"/mutate/longhorn/server-pods":     reviewOf(podKind, create),
		"/mutate/longhorn/client-template": reviewOf(daemonSetKind, create),
		"/mutate/longhorn/services":        reviewOf(serviceKind, create),
		"/mutate/longhorn/sharemanagers":   reviewOf(shareKind, create),
		"/validate/longhorn/settings":      settingReview(settingKind, "CREATE", "storage-network", `{"metadata":{"name":"storage-network"},"value":"x"}`),
		settingStatusPath:                  statusReview(),
		straySettingsPath:                  strayReview("default"),
		networksPath:                       reviewOf(networkKind, create),
		deletionsPath:                      deletionReview("True"),
		volumeNetworksPath:                 reviewOf(claimKind, `"namespace":"default","name":"data","operation":"CREATE","object":{"metadata":{"name":"data","annotations":{"fairlead.io/volume-network":"nfs"}}}`),
		attachmentMarksPath:                attachmentReview("pv-a", "node-2"),
		attachmentsPath:                    attachmentReview("pv-a", "node-2"),
		nodesPath:                          reviewOf(nodeKind, `"name":"node-1","operation":"UPDATE","object":{"metadata":{"name":"node-1"},"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service"}]}},"oldObject":{"metadata":{"name":"node-1"}}`),
		nodeFenceOverridesPath:             reviewOf(nodeFenceKind, `"name":"node-1","operation":"CREATE","object":{"metadata":{"name":"node-1"}}`),
		nodeFencesPath:                     reviewOf(nodeFenceKind, `"name":"node-1","operation":"CREATE","object":{"metadata":{"name":"node-1"}}`),
		workloadPodsPath:                   reviewOf(podKind, `"namespace":"default","name":"web","operation":"CREATE","object":{"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}`),
		nfsServicesPath:                    nfsServiceReview("CREATE", `{"backends":[{"address":"x"}]}`, ""),
		nfsVolumesPath:                     nfsVolumeReview("nfs.lb.csi.storage.gke.io", `{"share":"x"}`, ""),
		nfsVolumeOptionsPath:               nfsVolumeReview("nfs.lb.csi.storage.gke.io", `{"share":"/x"}`, ""),
	}
}

// statusReview is Longhorn writing that its setting is applied.
func statusReview() string {
	return reviewOf(settingKind, `"subResource":"status","namespace":"longhorn-system","name":"storage-network-for-rwx-volume-enabled","operation":"UPDATE","object":{"metadata":{"name":"storage-network-for-rwx-volume-enabled"},"status":{"applied":true}},"oldObject":{"status":{"applied":false}}`)
}

func clusterIPService(volume string) client.Object {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: volume, Labels: map[string]string{"longhorn.io/share-manager": volume}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.43.0.10"},
	}
}

func TestADryRunIsJudgedAlikeAndWritesNothing(t *testing.T) {
	for path, review := range reviewsOfEveryPath() {
		h := newRig(t, readOnly{fakeClient(t, onNetwork()...)})
		dry := h.ask(t, path, review[:len(review)-2]+`,"dryRun":true}}`)
		if wet := h.ask(t, path, review); !reflect.DeepEqual(dry, wet) {
			t.Errorf("%s: dry %+v, else %+v", path, dry, wet)
		}
	}
}

// readOnly has no way to write.
type readOnly struct{ client.Reader }

func TestADutyThatIsOffLetsEverythingPass(t *testing.T) {
	off := func(_ *config.Configuration, p *Profile) {
		p.Duties = config.Duties{Settings: config.Off, Pods: config.Off, Services: config.Off, Networks: config.Off}
		p.Live, p.Record = nil, nil // nobody looks
	}
	h := newRig(t, fakeClient(t), off)
	for path, review := range reviewsOfEveryPath() {
		if slices.Contains(fencingPaths, path) || slices.Contains(nfsPaths, path) {
			continue // see TestAnAttachmentIsMarkedWhetherOrNotFencingIsOn, TestNFSRulesAreOffWithoutDrivers
		}
		response := h.ask(t, path, review)
		if !response.Allowed || response.Patch != nil || response.Warnings != nil || response.UID != "the-uid" {
			t.Errorf("%s: got %+v", path, response)
		}
	}
}

// fencingPaths are switched by no duty of a profile.
var fencingPaths = []string{attachmentMarksPath, attachmentsPath, nodesPath, nodeFenceOverridesPath, nodeFencesPath, workloadPodsPath}

// nfsPaths are switched by the drivers that are served.
var nfsPaths = []string{nfsServicesPath, nfsVolumesPath, nfsVolumeOptionsPath}

func TestEachDutySwitchesItsOwnRules(t *testing.T) {
	rulesOf := map[string]struct {
		off   func(*config.Duties)
		paths []string
	}{
		"pods":     {func(d *config.Duties) { d.Pods = config.Off }, []string{clientPodsPath, "/mutate/longhorn/server-pods", "/mutate/longhorn/client-template"}},
		"services": {func(d *config.Duties) { d.Services = config.Off }, []string{"/mutate/longhorn/services", "/mutate/longhorn/sharemanagers"}},
		// Who does not roll out the network of all does not roll out others.
		"settings": {func(d *config.Duties) { d.Settings = config.Off }, []string{"/validate/longhorn/settings", volumeNetworksPath, straySettingsPath, deletionsPath, settingStatusPath, clientPodsPath, "/mutate/longhorn/client-template"}},
		// Who only guards settings builds nothing by them, and leaves clients to the storage system.
		"applying settings": {func(d *config.Duties) { d.Settings = config.Guard }, []string{volumeNetworksPath, settingStatusPath, clientPodsPath, "/mutate/longhorn/client-template"}},
		"volumeNetworks":    {func(d *config.Duties) { d.VolumeNetworks = config.Off }, []string{volumeNetworksPath}},
	}
	for duty, test := range rulesOf {
		objects := slices.Concat(onNetwork(), serving(), []client.Object{
			setting("taint-toleration", "a:NoSchedule"), attachedVolume("pvc-b", "node-1", "web-0"), clusterIPService("pvc-b"),
			setting("storage-network", "kube-system/storage-net"), setting("storage-network-for-rwx-volume-enabled", "true"),
		})
		h := newRig(t, fakeClient(t, objects...), func(_ *config.Configuration, p *Profile) { test.off(&p.Duties) })
		reviews := reviewsOfEveryPath()
		for _, path := range slices.Sorted(maps.Keys(reviews)) {
			if slices.Contains(fencingPaths, path) || slices.Contains(nfsPaths, path) {
				continue
			}
			response := h.ask(t, path, reviews[path])
			acts := response.Patch != nil || !response.Allowed
			if off := slices.Contains(test.paths, path); acts == off && path != networksPath {
				t.Errorf("%s off, %s: got %+v", duty, path, response)
			}
		}
	}
}

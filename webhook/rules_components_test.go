package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
)

func TestComponentsAreBuiltAsSettingsSay(t *testing.T) {
	const images, servers = "/mutate/longhorn/backing-image-manager-pods", "/mutate/longhorn/server-pods"
	const tolerations = `{"op":"add","path":"/metadata/annotations","value":{"longhorn.io/last-applied-tolerations":"[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]"}}` +
		`,{"op":"add","path":"/spec/tolerations","value":[{"key":"a","operator":"Exists","effect":"NoSchedule"}]}`
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}
	overridden := &longhorn.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "node-1"}, Spec: longhorn.NodeSpec{InstanceManagerCPURequest: 700}}
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}
	manager := podReview(`{"metadata":{"labels":{"longhorn.io/data-engine":"v1"}},"spec":{"nodeName":"node-1","priority":0,"containers":[{"name":"x","resources":{}}]}}`)
	olderCPU := &v1alpha1.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "v2-data-engine-guaranteed-instance-manager-cpu"}, Value: ptr.To("2000")}
	managerV2 := strings.ReplaceAll(manager, `/data-engine":"v1"`, `/data-engine":"v2"`)
	for name, test := range map[string]struct {
		path, review string
		objects      []client.Object
		patch        string
		warning      string
	}{
		"nobody has set anything": {path: instanceManagersPath, review: manager, objects: []client.Object{node}},
		"tolerations": {
			path: instanceManagersPath, review: manager, objects: []client.Object{setting("taint-toleration", "a:NoSchedule"), node},
			patch: "[" + tolerations + "]",
		},
		"CPU of the node": {
			path: instanceManagersPath, review: manager, objects: []client.Object{setting("guaranteed-instance-manager-cpu", "10"), node},
			patch: `[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"400m"}}]`,
		},
		"CPU of the node, which has its own": {
			path: instanceManagersPath, review: manager, objects: []client.Object{setting("guaranteed-instance-manager-cpu", "10"), node, overridden},
			patch: `[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"700m"}}]`,
		},
		"CPU of a node that is not known": {
			path: instanceManagersPath, review: manager, objects: []client.Object{setting("guaranteed-instance-manager-cpu", "10")},
		},
		// Longhorn deletes an idle instance manager that has another CPU than its settings say.
		"CPU by a name that Longhorn has no more": {
			path: instanceManagersPath, review: managerV2, objects: []client.Object{setting("guaranteed-instance-manager-cpu", "10"), olderCPU, node},
			patch: `[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"400m"}}]`,
		},
		"nor while the value of the other can't be read": {
			path: instanceManagersPath, review: managerV2, objects: []client.Object{setting("guaranteed-instance-manager-cpu", "lots"), olderCPU, node},
		},
		"priority class": {
			path: images, review: manager, objects: []client.Object{setting("priority-class", "high"), high, node},
			patch: `[{"op":"add","path":"/spec/priorityClassName","value":"high"},{"op":"remove","path":"/spec/priority"}]`,
		},
		"a priority class that is not there": {
			path: images, review: manager, objects: []client.Object{setting("priority-class", "gone"), high, node},
			warning: `fairlead: left as it is, no such priority class: priority-class says "gone": create that PriorityClass, or the pod would be refused`,
		},
		"storage network": {
			path: images, review: manager, objects: []client.Object{setting("storage-network", "kube-system/storage-net"), node},
			patch: `[{"op":"add","path":"/metadata/annotations","value":{"k8s.v1.cni.cncf.io/networks":"[{\"namespace\": \"kube-system\", \"name\": \"storage-net\", \"interface\": \"lhnet1\"}]"}}]`,
		},
		"a value that is not well formed asks for nothing": {
			path: images, review: manager, objects: []client.Object{setting("taint-toleration", "a=b=c:NoSchedule"), node},
		},
		"share manager: tolerations, and no storage network": {
			path: servers, review: podReview(`{"metadata":{},"spec":{}}`),
			objects: []client.Object{setting("taint-toleration", "a:NoSchedule"), setting("storage-network", "kube-system/storage-net")},
			patch:   "[" + tolerations + "]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, test.path, test.review)
			patch := ""
			if response.Patch != nil {
				patch = compact(t, response.Patch)
			}
			if !response.Allowed || patch != test.patch {
				t.Errorf("patch: got  %s\nwant %s", patch, test.patch)
			}
			if got := strings.Join(response.Warnings, "\n"); got != test.warning {
				t.Errorf("warnings: got %s", got)
			}
		})
	}
}

// A share manager has its network from its volume, also where settings are only guarded.
func TestServersHaveTheirNetworkWhereSettingsAreGuarded(t *testing.T) {
	h := newRig(t, fakeClient(t, append(onNetwork(), setting("taint-toleration", "a:NoSchedule"))...), func(_ *config.Configuration, p *Profile) {
		p.Duties.Settings = config.Guard
	})
	response := h.ask(t, "/mutate/longhorn/server-pods", podReview(`{"metadata":{}}`))
	if got := string(response.Patch); !strings.Contains(got, "storage-net") || strings.Contains(got, "tolerations") {
		t.Errorf("patch: got %s", got)
	}
}

// What can't be known is left to the failure policy: the pod is created as it is.
func TestComponentsWithoutFactsAreNotJudged(t *testing.T) {
	broken := interceptor.NewClient(fakeClient(t, append(onNetwork(), setting("priority-class", "high"))...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*schedulingv1.PriorityClassList); ok {
				return errors.New("away")
			}
			return c.List(ctx, list, opts...)
		},
	})
	h := newRig(t, broken)
	if status, _ := h.post(instanceManagersPath, podReview(`{"metadata":{}}`)); status != http.StatusInternalServerError {
		t.Errorf("status %d", status)
	}
	// But what serves a volume has its network all the same.
	response := h.ask(t, "/mutate/longhorn/server-pods", podReview(`{"metadata":{}}`))
	if !strings.Contains(string(response.Patch), "storage-net") || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "away") {
		t.Errorf("got %s, %q", response.Patch, response.Warnings)
	}
}

func TestValuesAreStoredInTheirNormalForm(t *testing.T) {
	for name, test := range map[string]struct {
		kind, setting, object string
		patch                 string
		warnings              []string
	}{
		"trimmed": {
			settingKind, "storage-network", `{"metadata":{"name":"storage-network"},"value":" kube-system/storage-net "}`,
			`[{"op":"replace","path":"/value","value":"kube-system/storage-net"}]`, []string{`fairlead: stored as "kube-system/storage-net"`},
		},
		"Fairlead's own": {
			ownKind, "auto-delete-pod-when-volume-detached-unexpectedly", `{"metadata":{"name":"auto-delete-pod-when-volume-detached-unexpectedly"},"value":"True"}`,
			`[{"op":"replace","path":"/value","value":"true"}]`, []string{`fairlead: stored as "true"`},
		},
		"the storage system's, outside the danger zone": {
			settingKind, "auto-delete-pod-when-volume-detached-unexpectedly", `{"metadata":{"name":"auto-delete-pod-when-volume-detached-unexpectedly"},"value":"True"}`, "", nil,
		},
		"as it should be": {settingKind, "storage-network", `{"metadata":{"name":"storage-network"},"value":"a/b"}`, "", nil},
		"not well formed": {settingKind, "storage-network", `{"metadata":{"name":"storage-network"},"value":" a/b/c "}`, "", nil},
		"unknown":         {ownKind, "storage-netwrok", `{"metadata":{"name":"storage-netwrok"},"value":" a/b "}`, "", nil},
		"without a value": {ownKind, "storage-network", `{"metadata":{"name":"storage-network"}}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t)).ask(t, valuesPath, settingReview(test.kind, "UPDATE", test.setting, test.object))
			patch := ""
			if response.Patch != nil {
				patch = compact(t, response.Patch)
			}
			if !response.Allowed || patch != test.patch || !slices.Equal(response.Warnings, test.warnings) {
				t.Errorf("got %s, %q", patch, response.Warnings)
			}
		})
	}
}

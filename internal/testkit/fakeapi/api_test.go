package fakeapi_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestDeletionChecksPreconditions(t *testing.T) {
	b := testkit.NewBench(t, fakeapi.New(scheme.Scheme, nil), objects.Pod("default", "a", ""))
	pod := testkit.Get[corev1.Pod](t, b, "default", "a")
	for name, wrong := range map[string]client.Preconditions{
		"UID": {UID: ptr.To[types.UID]("other")}, "version": {UID: &pod.UID, ResourceVersion: ptr.To("999")},
	} {
		if err := b.Client.Delete(t.Context(), pod.DeepCopy(), wrong); !apierrors.IsConflict(err) {
			t.Errorf("with another %s: got %v, want a conflict", name, err)
		}
	}
	b.Must(b.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}))
	must.Check(t, testkit.Get[corev1.Pod](t, b, "default", "a") == nil, "the pod is still there")
}

func TestCrashedClientWritesNothing(t *testing.T) {
	for _, done := range []bool{false, true} {
		b := testkit.NewBench(t, fakeapi.New(scheme.Scheme, nil))
		b.Client.CrashAt(1, done)
		b.Must(b.Client.Create(t.Context(), objects.Node("a")))
		for _, name := range []string{"b", "c"} {
			if err := b.Client.Create(t.Context(), objects.Node(name)); !errors.Is(err, fakeapi.ErrCrashed) || !b.Client.Crashed() {
				t.Fatalf("got %v", err)
			}
		}
		if there := testkit.Get[corev1.Node](t, b, "", "b") != nil; there != done || testkit.Get[corev1.Node](t, b, "", "c") != nil {
			t.Errorf("the write of the crash is done: %t, want %t", there, done)
		}
		if b.NewLeader(); b.Client.Create(t.Context(), objects.Node("d")) != nil {
			t.Error("the next leader has crashed too")
		}
	}
}

func TestGenerationCountsChangesOfTemplates(t *testing.T) {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Generation: 1}}
	b := testkit.NewBench(t, fakeapi.New(scheme.Scheme, nil), d)
	for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"minReadySeconds":5}}`} {
		b.Must(b.API.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	if got := testkit.Get[appsv1.DaemonSet](t, b, "default", "a").Generation; got != 2 {
		t.Errorf("got generation %d, want 2", got)
	}
}

// The check of all controllers' writes would be worth nothing if it let one of these pass.
func TestUnboundWritesPanic(t *testing.T) {
	b := testkit.NewBench(t, fakeapi.New(scheme.Scheme, nil), objects.Node("a"))
	read := testkit.Get[corev1.Node](t, b, "", "a")
	unread := objects.Node("a")
	merge := func(data string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(data)) }
	operations := func(data string) client.Patch { return client.RawPatch(types.JSONPatchType, []byte(data)) }
	const cordon = `{"op":"add","path":"/spec/unschedulable","value":true}`
	for name, c := range map[string]struct {
		write  func() error
		panics bool
	}{
		"update of what was read": {func() error { return b.Client.Update(t.Context(), read.DeepCopy()) }, false},
		"update":                  {func() error { return b.Client.Update(t.Context(), unread.DeepCopy()) }, true},
		"update of a status":      {func() error { return b.Client.Status().Update(t.Context(), unread.DeepCopy()) }, true},
		"merge patch":             {func() error { return b.Client.Patch(t.Context(), read.DeepCopy(), merge(`{"metadata":{"labels":{}}}`)) }, true},
		"merge patch with a UID": {func() error {
			return b.Client.Patch(t.Context(), read.DeepCopy(), merge(`{"metadata":{"uid":"`+string(read.UID)+`"}}`))
		}, false},
		"merge patch of a status": {func() error { return b.Client.Status().Patch(t.Context(), read.DeepCopy(), merge(`{"status":{}}`)) }, true},
		"JSON patch":              {func() error { return b.Client.Patch(t.Context(), read.DeepCopy(), operations(`[`+cordon+`]`)) }, true},
		"JSON patch with a test": {func() error {
			return b.Client.Patch(t.Context(), read.DeepCopy(), operations(`[{"op":"test","path":"/metadata/name","value":"a"},`+cordon+`]`))
		}, false},
		"deletion": {func() error { return b.Client.Delete(t.Context(), read.DeepCopy()) }, true},
		"deletion with its own UID": {func() error {
			return b.Client.Delete(t.Context(), read.DeepCopy(), client.Preconditions{UID: &read.UID})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { must.Equal(t, recover() != nil, c.panics, "panics") }()
			_ = c.write()
		})
	}
}

func TestFrozenCacheShowsOldState(t *testing.T) {
	b := testkit.NewBench(t, fakeapi.New(scheme.Scheme, nil), objects.Node("a"))
	b.Client.Cache = b.NewCache()
	b.Must(b.Client.Cache.Freeze(t.Context(), nil, &corev1.NodeList{}))
	testkit.Change(b, "", "a", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	must.Check(t, !testkit.Get[corev1.Node](t, b.Client, "", "a").Spec.Unschedulable, "the cache shows a change")
	if b.Client.Cache.Release(); !testkit.Get[corev1.Node](t, b.Client, "", "a").Spec.Unschedulable {
		t.Error("the cache does not catch up")
	}
}

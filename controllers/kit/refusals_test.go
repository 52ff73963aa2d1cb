package kit_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// status is an answer of the API server.
func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

const byPolicy = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"

func TestRefusedAndStaleWrites(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err            error
		refused, stale bool
	}{
		"conflict":                 {apierrors.NewConflict(pods, "a", errors.New("changed")), false, true},
		"not found":                {apierrors.NewNotFound(pods, "a"), false, true},
		"exists already":           {apierrors.NewAlreadyExists(pods, "a"), false, false},
		"no answer":                {errors.New("down"), false, false},
		"too many requests":        {apierrors.NewTooManyRequests("later", 1), false, false},
		"timeout":                  {apierrors.NewServerTimeout(pods, "create", 1), false, false},
		"expired token":            {apierrors.NewUnauthorized("who are you"), false, false},
		"forbidden":                {apierrors.NewForbidden(pods, "a", errors.New("no right")), true, false},
		"invalid":                  {status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, byPolicy), true, false},
		"policy says unauthorized": {status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, byPolicy), true, false},
		"webhook says conflict":    {status(http.StatusConflict, metav1.StatusReasonConflict, `admission webhook "w" denied the request: no`), true, false},
		"webhook is down":          {apierrors.NewInternalError(errors.New("failed calling webhook")), true, false},
		"none":                     {nil, false, false},
	} {
		must.Check(t, kit.IsRefused(c.err) == c.refused && kit.IsStale(c.err) == c.stale, "%s: refused %t, stale %t", name, kit.IsRefused(c.err), kit.IsStale(c.err))
	}
}

func TestRefusedWritesAreEventsOfTheirObjects(t *testing.T) {
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "p"}}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Service", Name: "files", UID: "u", Controller: ptr.To(true)},
	}}}
	b := testkit.NewBench(t, api, pod.DeepCopy())
	pod.ResourceVersion = "1"
	c := &kit.RefusalReporter{Client: b.Client, Events: b.Events}
	ctx := context.Background()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"uid":"p"}}`))
	refused := true
	b.Client.Before = func(fakeapi.Write) error {
		if refused {
			return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, byPolicy)
		}
		return nil
	}
	for want, write := range map[string]func() error{
		"create EndpointSlice s":     func() error { return c.Create(ctx, slice.DeepCopy()) },
		"update Pod a":               func() error { return c.Update(ctx, pod.DeepCopy()) },
		"patch Pod a":                func() error { return c.Patch(ctx, pod.DeepCopy(), patch) },
		"delete Pod a":               func() error { return c.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID}) },
		"update the status of Pod a": func() error { return c.Status().Update(ctx, pod.DeepCopy()) },
		"patch the status of Pod a":  func() error { return c.Status().Patch(ctx, pod.DeepCopy(), patch) },
	} {
		b.Events.Clear()
		for range 2 {
			must.True(t, kit.IsRefused(write()), "%s is not refused", want)
		}
		notes := b.Events.Notes()
		must.True(t, len(notes) == 1 && strings.HasPrefix(notes[0], "Warning Refused: the API server refuses to "+want+", ") && strings.Contains(notes[0], byPolicy), "%s: got %q", want, notes)
	}
	b.Events.Clear()
	must.True(t, c.Create(ctx, slice.DeepCopy()) != nil && len(b.Events.All()) == 0, "the same answer is reported twice: %v", b.Events.Notes())
	refused = false
	must.Do(t, c.Create(ctx, slice.DeepCopy()))
	refused = true
	must.True(t, c.Create(ctx, slice.DeepCopy()) != nil && len(b.Events.All()) == 1, "not reported after a success: %v", b.Events.Notes())
	must.Equal(t, b.Events.Reasons("u"), []string{"Refused"}, "at the Service")
}

package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// Once keeps what was reported last of each object, so that a report is repeated only
// when it changes. It is kept in memory: a new leader reports again. The zero value is ready.
type Once[K, V comparable] struct{ reported sync.Map }

// IsNew reports whether value differs from the last value for key, and keeps it.
func (o *Once[K, V]) IsNew(key K, value V) bool {
	last, known := o.reported.Swap(key, value)
	return !known || last != any(value)
}

// Forget what was reported for a key.
func (o *Once[K, V]) Forget(key K) { o.reported.Delete(key) }

// ForgetAll forgets what was reported for all keys that match.
func (o *Once[K, V]) ForgetAll(match func(K) bool) {
	for key := range o.reported.Range {
		if k, ok := key.(K); ok && match(k) {
			o.reported.Delete(key)
		}
	}
}

// Len is the number of keys, so that tests find what is never forgotten.
func (o *Once[K, V]) Len() (n int) {
	for range o.reported.Range {
		n++
	}
	return n
}

// MaxNote is the longest note of an event, in bytes.
// Source: k8s.io/kubernetes pkg/apis/core/validation/events.go, NoteLengthLimit.
const MaxNote = 1024

// Note cuts a message that is too long for an event, between two characters.
func Note(message string) string { return Clip(message, MaxNote) }

// Clip cuts a message that is longer than most bytes, between two characters.
func Clip(message string, most int) string { return fence.Clip(message, most) }

// Words of webhooks and policies that deny a request, with a code of their choice, such as 401 or 409.
// Source: k8s.io/apiserver v0.37 pkg/admission/plugin/webhook/errors/statuserror.go, .../policy/validating/dispatcher.go.
const (
	deniedByWebhook = " denied the request"
	deniedByPolicy  = " denied request: "
)

// IsRefused reports whether the API server refused a write by a policy, a webhook, a quota, validation or
// missing rights. The same write at another time fails alike, so other work goes on.
func IsRefused(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.IsServerTimeout(err) {
		return false
	}
	status := answer.Status()
	if strings.Contains(status.Message, deniedByWebhook) || strings.Contains(status.Message, deniedByPolicy) {
		return true
	}
	switch status.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default: // 500 is the answer if a webhook that fails closed is down
		return status.Code >= http.StatusBadRequest && status.Code <= http.StatusInternalServerError
	}
}

// IsConflict reports whether a write failed because its object was changed or replaced since it was read. The change is an
// event, so the controller decides again. A webhook may deny with the same code: that is no conflict, as no event follows.
func IsConflict(err error) bool { return apierrors.IsConflict(err) && !IsRefused(err) }

// IsStale is IsConflict, or the object was deleted.
func IsStale(err error) bool {
	return (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && !IsRefused(err)
}

// RefusalReporter is a client that reports each refused write, also of dry runs, as an event of its object: once for
// each answer, and again after the write has succeeded. A slice is reported at its Service. Evictions are not reported
// here: their controller says more.
type RefusalReporter struct {
	client.Client
	// Events is set before the first write.
	Events events.EventRecorder

	reported Once[string, string]
}

// Create implements client.Writer.
func (c *RefusalReporter) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return c.report("create", o, c.Client.Create(ctx, o, options...))
}

// Update implements client.Writer.
func (c *RefusalReporter) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return c.report("update", o, c.Client.Update(ctx, o, options...))
}

// Patch implements client.Writer.
func (c *RefusalReporter) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.report("patch", o, c.Client.Patch(ctx, o, patch, options...))
}

// Delete implements client.Writer.
func (c *RefusalReporter) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.report("delete", o, c.Client.Delete(ctx, o, options...))
}

// Status implements client.StatusClient.
func (c *RefusalReporter) Status() client.SubResourceWriter {
	return &statusReporter{c.Client.Status(), c}
}

type statusReporter struct {
	client.SubResourceWriter
	client *RefusalReporter
}

func (s *statusReporter) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return s.client.report("update the status of", o, s.SubResourceWriter.Update(ctx, o, options...))
}

func (s *statusReporter) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.client.report("patch the status of", o, s.SubResourceWriter.Patch(ctx, o, patch, options...))
}

func (c *RefusalReporter) report(verb string, o client.Object, err error) error {
	kind := fmt.Sprintf("%T", o)
	if gvk, unknown := apiutil.GVKForObject(o, c.Scheme()); unknown == nil {
		kind = gvk.Kind
	}
	key := fmt.Sprintf("%s %s %s/%s", verb, kind, o.GetNamespace(), o.GetName())
	if !IsRefused(err) {
		c.reported.Forget(key)
		return err
	}
	if c.reported.IsNew(key, err.Error()) {
		c.Events.Eventf(waiting(o), nil, corev1.EventTypeWarning, "Refused", "Write", "%s", Note(
			fmt.Sprintf("the API server refuses to %s %s %s, so Fairlead tries again: %s", verb, kind, o.GetName(), err)))
	}
	return err
}

// waiting is the object where users look: the Service of a slice or of Endpoints, else the object itself.
func waiting(o client.Object) runtime.Object {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Service" {
		return &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: o.GetNamespace(), Name: owner.Name, UID: owner.UID}
	}
	return o
}

package frontend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Writer writes frontends. Its cache may hold only Services and slices
// with the label publish.ServiceLabel.
type Writer struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	Log  *slog.Logger
}

// Dead reports whether an address that is published now is dead. A dead address is
// removed in a write of its own, before another is published; a living one is
// replaced in one write. nil: all count as dead.
type Dead func(netip.AddrPort) bool

// Sync writes a frontend. A Conflict error means that the cache is stale: an event follows.
//
// The ClusterIP of the result must be recorded before clients use it: a Service
// that a user deletes is recreated with the recorded one.
func (w *Writer) Sync(ctx context.Context, f publish.Frontend, dead Dead) (Result, error) {
	result, err := w.sync(ctx, f, dead)
	return result, withCommand(err, f.Namespace)
}

func (w *Writer) sync(ctx context.Context, f publish.Frontend, dead Dead) (Result, error) {
	service, result, err := w.syncService(ctx, f)
	if err != nil {
		return result, fmt.Errorf("writing Service %s/%s: %w", f.Namespace, f.Name, err)
	}
	if service == nil {
		return result, w.clear(ctx, f)
	}
	if !f.ClusterIP.IsValid() {
		f.ClusterIP = result.ClusterIP
	}
	result.Moved, err = w.syncSlices(ctx, f, dead, service)
	if err != nil {
		return result, fmt.Errorf("publishing Service %s/%s: %w", f.Namespace, f.Name, err)
	}
	return result, nil
}

// syncService returns the Service after the write; nil if nothing may be published.
func (w *Writer) syncService(ctx context.Context, f publish.Frontend) (*corev1.Service, Result, error) {
	want := f.Object()
	have := &corev1.Service{}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(want), have); apierrors.IsNotFound(err) {
		have = nil
	} else if err != nil {
		return nil, Result{}, err
	}
	verdict := publish.Check(have, want)
	if verdict.Action == publish.Create {
		created := want.DeepCopy()
		err := w.Client.Create(ctx, created)
		switch {
		case err == nil:
			w.Log.Info("created", "service", f.Name, "namespace", f.Namespace, "clusterIP", created.Spec.ClusterIP)
			return done(created, Result{State: Published, Service: publish.Create})
		case !addressRefused(err) && !apierrors.IsAlreadyExists(err):
			return nil, Result{}, err
		}
		// A Service of this name may exist and not be cached: new, foreign, or without its label. The API server then
		// refuses its address as taken before it finds that the name is.
		have = &corev1.Service{}
		if readErr := w.Live.Get(ctx, client.ObjectKeyFromObject(want), have); apierrors.IsNotFound(readErr) && addressRefused(err) {
			return nil, taken(want, err), nil
		} else if readErr != nil {
			return nil, Result{}, readErr
		}
		verdict = publish.Check(have, want)
	}
	return w.act(ctx, have, verdict)
}

// act carries out the verdict on an existing Service.
func (w *Writer) act(ctx context.Context, have *corev1.Service, verdict publish.Verdict) (*corev1.Service, Result, error) {
	switch verdict.Action {
	case publish.Foreign:
		return nil, Result{State: Foreign, Message: verdict.Message}, nil
	case publish.WrongAddress:
		return nil, Result{State: WrongAddress, Message: verdict.Message}, nil
	case publish.Wait:
		return done(have, Result{State: Deleting, Message: verdict.Message, Service: publish.Keep})
	case publish.Update:
		if err := w.Client.Update(ctx, verdict.Service); addressRefused(err) {
			return nil, taken(verdict.Service, err), nil
		} else if err != nil {
			return nil, Result{}, err
		}
		// The Service was edited, or its server listens on another port.
		w.Log.Info("brought a Service in line", "service", have.Name, "namespace", have.Namespace)
		return done(verdict.Service, Result{State: Published, Service: publish.Update})
	}
	return done(have, Result{State: Published, Service: publish.Keep})
}

func done(service *corev1.Service, result Result) (*corev1.Service, Result, error) {
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return nil, Result{}, fmt.Errorf("the Service has ClusterIP %q, which is no address: %w", service.Spec.ClusterIP, err)
	}
	result.ClusterIP = address.Unmap()
	return service, result, nil
}

// addressRefused reports whether the API server refused the requested address: it is taken, or outside the Service network
// (k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go).
func addressRefused(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	for _, cause := range details(err) {
		if strings.HasPrefix(cause.Field, "spec.clusterIP") {
			return true
		}
	}
	return false
}

func taken(service *corev1.Service, err error) Result {
	return Result{State: Taken, Message: fmt.Sprintf(
		"Service %s cannot have its address %s again, which clients have mounted: %s. Find the Service that has the address (kubectl get services -A) and delete it: the address is then taken back",
		service.Name, service.Spec.ClusterIP, causes(err))}
}

func causes(err error) string {
	var messages []string
	for _, cause := range details(err) {
		messages = append(messages, cause.Message)
	}
	return strings.Join(messages, "; ")
}

func details(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Causes
	}
	return nil
}

func (w *Writer) addresses() addresses.Writer {
	return addresses.Writer{Client: w.Client, Live: w.Live}
}

package lists

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-io/fairlead/internal/limits"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// Live reads from the API server with little memory: long lists come in pages,
// and objects of the longest lists are reduced to the fields in use.
type Live struct {
	client.Reader
	// streams read the kinds with the longest lists. Reader reads all other kinds.
	streams []streamed
	Turns   *limits.Turns
}

// streamed decodes lists of some kinds while receiving them.
type streamed interface {
	reads(client.ObjectList) bool
	each(context.Context, client.ObjectList, func(runtime.Object) error, ...client.ListOption) error
}

// NewLive returns a reader that pages through the lists of an API server's client.
func NewLive(api client.Reader) *Live {
	return &Live{Reader: api, Turns: limits.NewTurns(HeavyAtOnce)}
}

// Streaming returns a copy that decodes lists of Longhorn's kinds, and of Kubernetes kinds with many objects, while receiving them.
func (l *Live) Streaming(config *rest.Config, connection *http.Client, mapper meta.RESTMapper, scheme *runtime.Scheme) (*Live, error) {
	codecs, parameters := serializer.NewCodecFactory(scheme), runtime.NewParameterCodec(scheme)
	core, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind(storage.VolumeKind), false, false, config, codecs, connection)
	if err != nil {
		return nil, fmt.Errorf("building the client of Kubernetes' own kinds: %w", err)
	}
	attachments, err := apiutil.RESTClientForGVK(storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), false, false, config, codecs, connection)
	if err != nil {
		return nil, fmt.Errorf("building the client of storage.k8s.io: %w", err)
	}
	custom, err := apiutil.RESTClientForGVK(longhorn.GroupVersion.WithKind("Volume"), true, false, config, codecs, connection)
	if err != nil {
		return nil, fmt.Errorf("building the client of Longhorn's kinds: %w", err)
	}
	streaming := *l
	streaming.streams = []streamed{&protoLists{core, attachments, parameters}, &jsonLists{custom, mapper, scheme, parameters}}
	return &streaming, nil
}

const (
	// Page is the page size of lists of big objects, LargePage of lists of small objects.
	Page, LargePage = 100, 500
	// HeavyAtOnce is how many callers may read whole lists at a time: the webhook has
	// little memory, and many reviews arrive at once.
	HeavyAtOnce = 2
)

// Turn waits until few other callers read whole lists. The returned function ends
// the turn.
func (l *Live) Turn(ctx context.Context) (end func(), _ error) {
	if err := l.Turns.Acquire(ctx); err != nil {
		return nil, fmt.Errorf("waiting for a turn to read many objects: %w", err)
	}
	return l.Turns.Release, nil
}

// List reads all pages into one list, without managed fields.
func (l *Live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var all []runtime.Object
	err := l.each(ctx, list, func(o runtime.Object) error {
		if o, ok := o.(metav1.Object); ok {
			o.SetManagedFields(nil)
		}
		kept := reflect.New(reflect.TypeOf(o).Elem()) // the page and the visited object are not kept
		kept.Elem().Set(reflect.ValueOf(o).Elem())
		all = append(all, kept.Interface().(runtime.Object))
		return nil
	}, options...)
	if err != nil {
		return err
	}
	list.SetContinue("")
	return meta.SetList(list, all)
}

// each visits all objects of a list, page by page.
func (l *Live) each(ctx context.Context, list client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption) error {
	for _, s := range l.streams {
		if s.reads(list) {
			return s.each(ctx, list, visit, options...)
		}
	}
	return EachPage(ctx, l.Reader, list, func() error { return meta.EachListItem(list, visit) }, options...)
}

// EachPage reads all objects of a kind page by page, and calls take after each page.
func EachPage(ctx context.Context, from client.Reader, list client.ObjectList, take func() error, options ...client.ListOption) error {
	empty := reflect.ValueOf(list).Elem()
	kind := list.GetObjectKind().GroupVersionKind()
	for next := ""; ; {
		empty.SetZero() // take may keep objects of the last page
		list.GetObjectKind().SetGroupVersionKind(kind)
		if err := from.List(ctx, list, append(options[:len(options):len(options)], client.Limit(pageOf(list)), client.Continue(next))...); err != nil {
			return err
		}
		if err := take(); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

func pageOf(list client.ObjectList) int64 {
	switch list.(type) {
	case *corev1.PersistentVolumeList, *storagev1.VolumeAttachmentList, *metav1.PartialObjectMetadataList:
		return LargePage
	}
	return Page
}

// ForEach visits all objects of a list, page by page if they come from the API
// server. The objects are read-only, and valid until take returns.
func ForEach[T client.Object](ctx context.Context, from client.Reader, list client.ObjectList, take func(T), options ...client.ListOption) error {
	visit := func(o runtime.Object) error {
		take(o.(T))
		return nil
	}
	if live, ok := from.(*Live); ok {
		return live.each(ctx, list, visit, options...)
	}
	if err := from.List(ctx, list, append(options[:len(options):len(options)], client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return meta.EachListItem(list, visit)
}

// NotInstalled reports whether a read failed because the kind does not exist.
func NotInstalled(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

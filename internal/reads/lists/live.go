// Package lists reads long lists from the API server page by page.
package lists

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Live reads from the API server, and lists page by page. No list holds more than one page of objects as they were sent.
type Live struct{ client.Reader }

// NewLive returns a reader that pages through the lists of an API server's client.
func NewLive(api client.Reader) *Live { return &Live{api} }

// Page is the page size of lists of big objects, LargePage of lists of small objects.
const Page, LargePage = 100, 500

// List reads all pages into one list, without managed fields.
func (l *Live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var all []runtime.Object
	err := EachPage(ctx, l.Reader, list, func() error {
		return meta.EachListItemWithAlloc(list, func(o runtime.Object) error {
			if o, ok := o.(metav1.Object); ok {
				o.SetManagedFields(nil)
			}
			all = append(all, o)
			return nil
		})
	}, options...)
	if err != nil {
		return err
	}
	return meta.SetList(list, all)
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
	case *corev1.NodeList, *corev1.PersistentVolumeList, *storagev1.VolumeAttachmentList, *metav1.PartialObjectMetadataList:
		return LargePage
	}
	return Page
}

// ForEach visits all objects of a list, page by page if they come from the API server. The objects are read-only, and valid
// until take returns.
func ForEach[T client.Object](ctx context.Context, from client.Reader, list client.ObjectList, take func(T), options ...client.ListOption) error {
	visit := func() error {
		return meta.EachListItem(list, func(o runtime.Object) error {
			take(o.(T))
			return nil
		})
	}
	if live, ok := from.(*Live); ok {
		return EachPage(ctx, live.Reader, list, visit, options...)
	}
	if err := from.List(ctx, list, append(options[:len(options):len(options)], client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return visit()
}

// NotInstalled reports whether a read failed because the kind does not exist.
func NotInstalled(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

package ondat

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowAPI answers reads as a cache does, and takes its time for writes. The fake
// client copies all objects for each list, so that it would measure itself.
type slowAPI struct {
	client.Client // the rest is not called
	mu            sync.Mutex
	objects       map[string]client.Object
	services      []*corev1.Service
	next          int
}

func newSlowAPI() *slowAPI { return &slowAPI{objects: map[string]client.Object{}} }

func slowKey(o client.Object, key client.ObjectKey) string { return fmt.Sprintf("%T %s", o, key) }

func (a *slowAPI) addClaim(namespace, name, pv string) {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	c.Spec.VolumeName, c.Status.Phase = pv, corev1.ClaimBound
	a.objects[slowKey(c, client.ObjectKeyFromObject(c))] = c
}

func (a *slowAPI) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	have, ok := a.objects[slowKey(o, key)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
	return nil
}

// List returns all Services: there are none but those of volumes, in one namespace.
func (a *slowAPI) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	services, ok := list.(*corev1.ServiceList)
	if !ok {
		return fmt.Errorf("%T is not listed here", list)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.services {
		services.Items = append(services.Items, *s)
	}
	return nil
}

func (a *slowAPI) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	time.Sleep(kubeLatency)
	a.mu.Lock()
	defer a.mu.Unlock()
	key := slowKey(o, client.ObjectKeyFromObject(o))
	if _, ok := a.objects[key]; ok {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, o.GetName())
	}
	a.next++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", a.next)))
	if s, ok := o.(*corev1.Service); ok {
		s.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", a.next/250, a.next%250+1)
		a.services = append(a.services, s.DeepCopy())
	}
	copied, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	a.objects[key] = copied
	return nil
}

// Delete is for Endpoints of the released manager: there are none.
func (a *slowAPI) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	time.Sleep(kubeLatency)
	return apierrors.NewNotFound(corev1.Resource("endpoints"), o.GetName())
}

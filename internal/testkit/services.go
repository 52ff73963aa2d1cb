package testkit

import (
	"context"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Published are the addresses and ports in the slices of a Service.
func Published(t TB, reader client.Reader, namespace, service string) []string {
	t.Helper()
	var list discoveryv1.EndpointSliceList
	Must(t, reader.List(context.Background(), &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	var all []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			for _, p := range s.Ports {
				all = append(all, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
			}
		}
	}
	return all
}

// Collect does what the garbage collector does once an object is gone: it deletes the Services, slices and Endpoints
// that the object owned.
func Collect(t TB, api client.Client, gone types.UID) {
	t.Helper()
	//nolint:staticcheck // The deprecated Endpoints are published too.
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &corev1.EndpointsList{}} {
		Must(t, api.List(context.Background(), list))
		Must(t, meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			if !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == gone }) {
				return nil
			}
			err := api.Delete(context.Background(), o)
			Collect(t, api, o.GetUID())
			return err
		}))
	}
}

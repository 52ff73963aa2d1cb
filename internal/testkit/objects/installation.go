package objects

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lease of a controller that leads.
func Lease(now time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(now.Add(-time.Second))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead-controller"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("fairlead-controller-1"), RenewTime: &renewed},
	}
}

// Installation is Fairlead as it should be: replicas are ready, one controller leads, and the webhooks have their CA.
func Installation(now time.Time) []client.Object {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "fairlead-system", Name: name}
	}
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.DeploymentStatus{ReadyReplicas: 2}}
	}
	ca := admissionregistrationv1.WebhookClientConfig{CABundle: []byte("PEM")}
	return []client.Object{
		deployment("fairlead-webhook"), deployment("fairlead-controller"),
		Lease(now),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fairlead"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "pods.longhorn.fairlead.io", ClientConfig: ca}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "fairlead"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "settings.longhorn.fairlead.io", ClientConfig: ca}}},
	}
}

package ondat

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestClaimIsComparedWithTheVolume(t *testing.T) {
	f := Judge([]Volume{volume("1", "10.0.0.1:1")})[0]
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		change(c)
		return c
	}
	terminating := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }
	for name, c := range map[string]struct {
		claim      *corev1.PersistentVolumeClaim
		hasService bool
		want       Reason
	}{
		"bound":                   {claim(func(*corev1.PersistentVolumeClaim) {}), false, ""},
		"missing":                 {nil, true, ClaimMissing},
		"not bound":               {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }), false, ClaimNotBound},
		"to be bound":             {claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }), false, ClaimNotBound},
		"bound to another":        {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }), true, ClaimNotBound},
		"terminating":             {claim(terminating), false, ClaimTerminating},
		"terminating, and in use": {claim(terminating), true, ""},
		"lost its PV, and in use": {claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), true, ""},
	} {
		var got Refusal
		err := f.CheckClaim(c.claim, c.hasService)
		must.True(t, errors.As(err, &got) == (c.want != "") && got.Reason == c.want && (got.Message == "") == (c.want == ""), "%s: %v", name, err)
	}
}

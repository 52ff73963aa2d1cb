package ondat

import (
	"errors"
	"strings"
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
		want       string
	}{
		"bound":                   {claim(func(*corev1.PersistentVolumeClaim) {}), false, ""},
		"missing":                 {nil, true, "ClaimMissing"},
		"not bound":               {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }), false, "ClaimNotBound"},
		"to be bound":             {claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }), false, "ClaimNotBound"},
		"bound to another":        {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }), true, "ClaimNotBound"},
		"terminating":             {claim(terminating), false, "ClaimTerminating"},
		"terminating, and in use": {claim(terminating), true, ""},
		"lost its PV, and in use": {claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), true, ""},
	} {
		var got Refusal
		err := f.checkClaim(c.claim, c.hasService)
		must.True(t, errors.As(err, &got) == (c.want != "") && got.Reason == c.want && (got.Message == "") == (c.want == ""), "%s: %v", name, err)
	}
}

func TestServiceOfTheVolumeIsFoundByItsLabel(t *testing.T) {
	v := volume("1", "10.0.0.1:1")
	v.Labels[LabelMountEndpoint] = "10.96.0.2:2049"
	f := Judge([]Volume{v})[0]
	of := func(id, name, address string) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{VolumeIDLabel: id}}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	}
	a, b, c, other := of("1", "a", "10.96.0.1"), of("1", "b", "10.96.0.2"), of("1", "c", "10.96.0.3"), of("2", "x", "10.96.0.2")
	for name, test := range map[string]struct {
		owned     []corev1.Service
		want, err string
	}{
		"none":                    {nil, "", ""},
		"one":                     {[]corev1.Service{a}, "a", ""},
		"the published address":   {[]corev1.Service{a, b, c}, "b", ""},
		"after another volume's":  {[]corev1.Service{other, a}, "a", ""},
		"before another volume's": {[]corev1.Service{a, other}, "a", ""},
		"another volume's":        {[]corev1.Service{other}, "", "ClaimOfTwoVolumes"},
	} {
		var why Refusal
		own, err := f.ownService(test.owned)
		must.Equal(t, errors.As(err, &why), test.err != "", "%s: %v", name, err)
		must.Equal(t, why.Reason, test.err, "%s", name)
		must.True(t, (own == nil) == (test.want == "") && (own == nil || own.Name == test.want), "%s: got %+v", name, own)
	}
}

func TestNameOfTheService(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		by        Naming
		pvc, pv   string
		want, err string
	}{
		{ByPVC, "data", "pvc-1", "data", ""},
		{ByPV, "data", "pvc-1", "pvc-1", ""},
		{ByPVC, long, "pvc-1", "pvc-1", ""},
		{ByPVC, "my.data", "pvc-1", "pvc-1", ""},
		{ByPVC, "1data", "pvc-1", "pvc-1", ""},
		{ByPV, "data", "my.pv", "data", ""},
		{ByPVC, long, "1pv", "", "has a name that a Service can have"},
	} {
		got, err := Finding{PV: c.pv, PVC: c.pvc}.serviceName(c.by)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

package ondat

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestCacheExpiresPerVolume(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := Cache{Expiry: DefaultCacheExpiry}
	one, two := Judge([]Volume{volume("1", "10.0.0.1:1")})[0], Judge([]Volume{volume("2", "10.0.0.2:1")})[0]
	must.True(t, !c.Fresh(one, now), "a volume that was never added")
	c.Add(one, now)
	c.Add(two, now.Add(30*time.Second))
	for _, at := range []struct {
		after    time.Duration
		one, two bool
	}{{0, true, true}, {59 * time.Second, true, true}, {60 * time.Second, false, true}, {89 * time.Second, false, true}, {90 * time.Second, false, false}} {
		a, b := c.Fresh(one, now.Add(at.after)), c.Fresh(two, now.Add(at.after))
		must.True(t, a == at.one && b == at.two, "after %s: %t, %t", at.after, a, b)
	}
	c.Drop("1")
	must.True(t, !c.Fresh(one, now) && c.Len() == 1, "a volume that was dropped")
}

func TestCacheSeesWhatMatters(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, change := range map[string]struct {
		apply func(*Volume)
		fresh bool
	}{
		"nothing":         {func(*Volume) {}, true},
		"version":         {func(v *Volume) { v.Version = "2" }, true},
		"other label":     {func(v *Volume) { v.Labels["team"] = "x" }, true},
		"server":          {func(v *Volume) { v.ServiceEndpoint = "10.0.0.2:1" }, false},
		"port of server":  {func(v *Volume) { v.ServiceEndpoint = "10.0.0.1:2" }, false},
		"attachment":      {func(v *Volume) { v.AttachmentType = Detached }, false},
		"no server":       {func(v *Volume) { v.ServiceEndpoint = "" }, false},
		"mount endpoint":  {func(v *Volume) { v.Labels[LabelMountEndpoint] = "10.96.0.9:2049" }, false},
		"broken endpoint": {func(v *Volume) { v.Labels[LabelMountEndpoint] = "None:2049" }, false},
		"PVC":             {func(v *Volume) { v.Labels[LabelPVC] = "other" }, false},
		"namespace":       {func(v *Volume) { v.Labels[LabelNamespace] = "other" }, false},
		"PV":              {func(v *Volume) { v.Labels[LabelPV] = "other" }, false},
		"Ondat namespace": {func(v *Volume) { v.NamespaceID = "other" }, false},
	} {
		v := volume("1", "10.0.0.1:1")
		c := Cache{Expiry: time.Minute}
		c.Add(Judge([]Volume{v})[0], now)
		v.Labels = maps.Clone(v.Labels)
		change.apply(&v)
		must.Equal(t, c.Fresh(Judge([]Volume{v})[0], now), change.fresh, "%s: fresh", name)
	}
}

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
		got, message := f.CheckClaim(c.claim, c.hasService)
		must.True(t, got == c.want && (message == "") == (got == ""), "%s: %s %q", name, got, message)
	}
}

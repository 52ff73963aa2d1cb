package fencing

import (
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeftoverSwitchIsReported(t *testing.T) {
	for value, reported := range map[string]bool{"false": true, " False\n": true, "true": false, "": false} {
		w := newWorld(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "rook-ceph-operator-config"}, Data: map[string]string{"ROOK_WATCH_FOR_NODE_FAILURE": value}})
		l := &Leftovers{Profiles: w.config.Profiles, API: w.Client, Events: recorder{w}, Log: slog.New(slog.DiscardHandler)}
		w.must(l.Start(t.Context()))
		if got := strings.Join(w.notes, "\n"); strings.Contains(got, "ConfigMap Warning LeftoverSwitch: ROOK_WATCH_FOR_NODE_FAILURE") != reported {
			t.Errorf("%q: %q", value, got)
		}
	}
}

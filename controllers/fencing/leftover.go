package fencing

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
)

// Leftovers reports, when the controller begins to lead, switches that once turned off the fencing
// of a storage system and have no effect here.
type Leftovers struct {
	Profiles []config.FencingProfile
	API      client.Reader
	Events   events.EventRecorder
	Log      *slog.Logger
}

// SetupWithManager registers it.
func (l *Leftovers) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(l) }

// Start reads each ConfigMap once. Fencing does not depend on what it finds.
func (l *Leftovers) Start(ctx context.Context) error {
	for _, p := range l.Profiles {
		s := p.Storage()
		var m corev1.ConfigMap
		err := l.API.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.FormerSwitch.ConfigMap}, &m)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			l.Log.Warn("could not look for a leftover switch", "namespace", s.Namespace, "configMap", s.FormerSwitch.ConfigMap, "error", err)
		case s.FormerSwitch.Off(m.Data):
			message := fmt.Sprintf("%s is %q here and changes nothing: Fairlead's fencing is switched by fencing.profiles[%s].mode, which is %s; remove the key",
				s.FormerSwitch.Key, m.Data[s.FormerSwitch.Key], p.Name, p.Mode)
			l.Log.Warn("found a leftover switch", "namespace", s.Namespace, "configMap", m.Name, "message", message)
			l.Events.Eventf(&m, nil, corev1.EventTypeWarning, "LeftoverSwitch", "Start", "%s", message)
		}
	}
	return nil
}

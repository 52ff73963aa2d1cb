package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// MountingOf reads from the NetworkRollout where clients mount volumes.
func MountingOf(rollout *v1alpha1.NetworkRollout) storage.Mounting {
	m := rollout.Status.Clients.Mounts
	if m == nil {
		return storage.Mounting{}
	}
	mounting := storage.Mounting{Place: storage.MountPlace(m.Place), Since: m.Since.Time, Before: storage.MountPlace(m.Before)}
	if m.BeforeSince != nil {
		mounting.BeforeSince = m.BeforeSince.Time
	}
	return mounting
}

// SetMounting writes into the NetworkRollout where clients mount volumes.
func SetMounting(rollout *v1alpha1.NetworkRollout, m storage.Mounting) {
	rollout.Status.Clients.Mounts = &v1alpha1.ClientMounts{
		Place: string(m.Place), Since: metav1.NewMicroTime(m.Since), Before: string(m.Before),
	}
	if !m.BeforeSince.IsZero() {
		rollout.Status.Clients.Mounts.BeforeSince = ptr.To(metav1.NewMicroTime(m.BeforeSince))
	}
}

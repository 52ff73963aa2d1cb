package mutators

import (
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// MutateShareManagerPod is MutateServerPod and MutateComponent in one patch: a
// pod that serves a shared volume has its network from the volume, and the rest
// from settings.
func MutateShareManagerPod(pod ComponentPod, interfaces Interfaces, service *storage.Service, record settings.Record, wants ComponentWants) Result {
	server := ServerPod{Metadata: pod.Metadata, Spec: pod.Spec.PodSpec}
	joined := MutateServerPod(server, interfaces, service, record)
	if len(joined.Patch) > 0 && pod.Metadata.Annotations == nil {
		pod.Metadata.Annotations = &PodAnnotations{} // the patch has made them
	}
	return joined.and(MutateComponent(pod, interfaces.Namespace, wants))
}

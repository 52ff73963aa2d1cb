package objects

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// LargeVolume names a volume of Large.
func LargeVolume(i int) string { return fmt.Sprintf("pvc-%08d", i) }

// Large is a cluster whose lists have many pages: PersistentVolumes with claims, of which the first ask for network
// team-x/nfs, and the first Longhorn volumes are attached, each with an engine and three replicas.
func Large(persistentVolumes, volumes, nodes, asking int) []client.Object {
	const driver = "driver.longhorn.io"
	node := func(i int) string { return fmt.Sprintf("node-%03d", i%nodes) }
	all := []client.Object{
		Record(multus.Attachment{}), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "longhorn"}, Provisioner: driver},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "longhorn-critical"}},
	}
	for i := range persistentVolumes {
		claim := Claim(fmt.Sprintf("data-%d", i), LargeVolume(i))
		claim.UID = types.UID(fmt.Sprintf("uid-%d", i))
		if i < asking {
			claim.Annotations = map[string]string{rwx.VolumeNetworkAnnotation: "team-x/nfs"}
		}
		all = append(all, claim, Volume(LargeVolume(i), driver, LargeVolume(i), claim.Name, Shared, func(pv *corev1.PersistentVolume) {
			pv.Spec.StorageClassName, pv.Spec.ClaimRef.UID = "longhorn", claim.UID
		}))
	}
	managers := make([]*longhorn.InstanceManager, nodes)
	for i := range managers {
		name := fmt.Sprintf("instance-manager-%03d", i)
		pod := Pod(Longhorn.Namespace, name, node(i))
		pod.Labels = maps.Clone(Longhorn.InstanceManagerLabels)
		pod.Labels["longhorn.io/data-engine"] = longhorn.EngineV1
		pod.Spec.Containers = []corev1.Container{{Name: "instance-manager", Args: []string{"instance-manager"}}}
		managers[i] = &longhorn.InstanceManager{ObjectMeta: Here(name), Spec: longhorn.InstanceManagerSpec{NodeID: node(i), DataEngine: longhorn.EngineV1}}
		managers[i].Status = longhorn.InstanceManagerStatus{CurrentState: "running", InstanceEngines: map[string]longhorn.InstanceProcess{}, InstanceReplicas: map[string]longhorn.InstanceProcess{}}
		all = append(all, Node(node(i)), pod, managers[i])
	}
	running := longhorn.InstanceProcess{Status: longhorn.InstanceProcessStatus{State: "running"}}
	for i := range volumes {
		name := LargeVolume(i)
		spec := longhorn.InstanceSpec{VolumeName: name, NodeID: node(i), DesireState: "running", DataEngine: longhorn.EngineV1}
		status := longhorn.InstanceStatus{CurrentState: "running", InstanceManagerName: managers[i%nodes].Name}
		all = append(all, LonghornVolume(name, node(i), RWX, func(v *longhorn.Volume) {
			v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", PVName: name, WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web"}}}
		}), Attachment(name, node(i), driver), ServerPod(name),
			&longhorn.Engine{ObjectMeta: Here(name + "-e-0"), Spec: spec, Status: status},
			&longhorn.VolumeAttachment{ObjectMeta: Here(name), Spec: longhorn.VolumeAttachmentSpec{Volume: name, AttachmentTickets: map[string]longhorn.AttachmentTicket{"csi": {NodeID: node(i)}}}})
		managers[i%nodes].Status.InstanceEngines[name+"-e-0"] = running
		for n := range 3 {
			replica := fmt.Sprintf("%s-r-%d", name, n)
			spec.NodeID, status.InstanceManagerName = node(i+n), managers[(i+n)%nodes].Name
			all = append(all, &longhorn.Replica{ObjectMeta: Here(replica), Spec: spec, Status: status})
			managers[(i+n)%nodes].Status.InstanceReplicas[replica] = running
		}
	}
	return all
}

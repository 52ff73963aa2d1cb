package apiserver

import "fmt"

// Longhorn's objects have the fields of longhorn-manager v1.7.2 (k8s/pkg/apis/longhorn/v1beta2).

func object(kind, name, nodeName string) map[string]any {
	return map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": kind,
		"metadata": map[string]any{
			"name": name, "namespace": namespace, "uid": "2d7f8e0a-53a6-4b5e-9d3d-0a1c9b6e4f11", "resourceVersion": "123456", "generation": 3,
			"creationTimestamp": "2026-03-02T09:14:07Z", "finalizers": []any{"longhorn.io"},
			"labels":          map[string]any{"longhornvolume": name, "longhornnode": nodeName, "setting.longhorn.io/remove-snapshots-during-filesystem-trim": "ignored"},
			"ownerReferences": []any{map[string]any{"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "name": name, "uid": "2d7f8e0a-53a6-4b5e-9d3d-0a1c9b6e4f11"}},
		},
	}
}

func volume(size Size, i int) map[string]any {
	name, at := VolumeName(i), NodeName(i%size.Nodes)
	var conditions []any
	for _, kind := range []string{"WaitForBackingImage", "TooManySnapshots", "Scheduled", "Restore", "OfflineRebuilding"} {
		conditions = append(conditions, map[string]any{"lastProbeTime": "", "lastTransitionTime": "2026-03-02T09:14:07Z", "message": "", "reason": "", "status": "False", "type": kind})
	}
	o := object("Volume", name, at)
	o["spec"] = map[string]any{
		"Standby": false, "accessMode": "rwx", "backendStoreDriver": "", "backingImage": "", "backupCompressionMethod": "lz4", "dataEngine": "v1", "dataLocality": "disabled", "dataSource": "",
		"disableFrontend": false, "diskSelector": []any{}, "encrypted": false, "engineImage": "", "freezeFilesystemForSnapshot": "ignored", "fromBackup": "", "frontend": "blockdev",
		"image": "longhornio/longhorn-engine:v1.7.2", "lastAttachedBy": "", "migratable": false, "migrationNodeID": "", "nodeID": at, "nodeSelector": []any{}, "numberOfReplicas": replicas,
		"replicaAutoBalance": "ignored", "replicaDiskSoftAntiAffinity": "ignored", "replicaSoftAntiAffinity": "ignored", "replicaZoneSoftAntiAffinity": "ignored", "restoreVolumeRecurringJob": "ignored",
		"revisionCounterDisabled": true, "size": "10737418240", "snapshotDataIntegrity": "ignored", "snapshotMaxCount": 250, "snapshotMaxSize": "0", "staleReplicaTimeout": 30, "unmapMarkSnapChainRemoved": "ignored",
	}
	o["status"] = map[string]any{
		"actualSize": 1048576, "cloneStatus": map[string]any{"attemptCount": 0, "nextAllowedAttemptAt": "", "snapshot": "", "sourceVolume": "", "state": ""}, "conditions": conditions,
		"currentImage": "longhornio/longhorn-engine:v1.7.2", "currentMigrationNodeID": "", "currentNodeID": at, "expansionRequired": false, "frontendDisabled": false, "isStandby": false,
		"kubernetesStatus": map[string]any{
			"lastPVCRefAt": "", "lastPodRefAt": "", "namespace": "team-a", "pvName": name, "pvStatus": "Bound", "pvcName": fmt.Sprintf("data-%d", i),
			"workloadsStatus": []any{map[string]any{"podName": fmt.Sprintf("web-%d", i), "podStatus": "Running", "workloadName": "web", "workloadType": "StatefulSet"}},
		},
		"lastBackup": "", "lastBackupAt": "", "lastDegradedAt": "", "ownerID": at, "pendingNodeID": "", "remountRequestedAt": "", "restoreInitiated": false, "restoreRequired": false,
		"robustness": "healthy", "shareEndpoint": "nfs://10.43.1.2/" + name, "shareState": "running", "state": "attached",
	}
	return o
}

// tickets are Longhorn's own attachment of a volume: that of the CSI driver and that of its share manager.
func tickets(size Size, i int) map[string]any {
	name, at := VolumeName(i), NodeName(i%size.Nodes)
	wished, told := map[string]any{}, map[string]any{}
	for kind, id := range map[string]string{"csi-attacher": "csi-" + name + "-" + at, "share-manager-controller": "share-manager-controller-" + name} {
		wished[id] = map[string]any{"generation": 0, "id": id, "nodeID": at, "parameters": map[string]any{"disableFrontend": "false", "lastAttachedBy": ""}, "type": kind}
		told[id] = map[string]any{
			"generation": 0, "id": id, "satisfied": true,
			"conditions": []any{map[string]any{"lastProbeTime": "", "lastTransitionTime": "2026-03-02T09:14:07Z", "message": "", "reason": "", "status": "True", "type": "Satisfied"}},
		}
	}
	o := object("VolumeAttachment", name, at)
	o["spec"], o["status"] = map[string]any{"attachmentTickets": wished, "volume": name}, map[string]any{"attachmentTicketStatuses": told}
	return o
}

func engine(size Size, i int) map[string]any {
	name, at := VolumeName(i)+"-e-0", NodeName(i%size.Nodes)
	modes, addresses := map[string]any{}, map[string]any{}
	for n := range replicas {
		modes[replicaName(i, n)], addresses[replicaName(i, n)] = "RW", "10.1.0.1:10000"
	}
	snapshots := map[string]any{}
	for n := range size.Snapshots {
		name, child := fmt.Sprintf("hourly-c-%06d-%04d", i, n), fmt.Sprintf("hourly-c-%06d-%04d", i, n+1)
		snapshots[name] = map[string]any{
			"children": map[string]any{child: true}, "created": "2026-03-02T09:14:07Z", "labels": map[string]any{"RecurringJob": "hourly"},
			"name": name, "parent": "", "removed": false, "size": "1048576", "usercreated": true,
		}
	}
	o := object("Engine", name, at)
	o["spec"] = map[string]any{
		"active": true, "backupVolume": "", "dataEngine": "v1", "desireState": "running", "disableFrontend": false, "frontend": "blockdev", "image": "longhornio/longhorn-engine:v1.7.2", "logRequested": false,
		"nodeID": at, "replicaAddressMap": addresses, "requestedBackupRestore": "", "requestedDataSource": "", "revisionCounterDisabled": true, "salvageRequested": false, "snapshotMaxCount": 250,
		"snapshotMaxSize": "0", "unmapMarkSnapChainRemovedEnabled": false, "upgradedReplicaAddressMap": map[string]any{}, "volumeName": VolumeName(i), "volumeSize": "10737418240",
	}
	o["status"] = map[string]any{
		"currentImage": "longhornio/longhorn-engine:v1.7.2", "currentReplicaAddressMap": addresses, "currentSize": "10737418240", "currentState": "running", "endpoint": "/dev/longhorn/" + VolumeName(i),
		"instanceManagerName": managerName(i % size.Nodes), "ip": "10.1.0.1", "isExpanding": false, "logFetched": false, "ownerID": at, "port": 10000, "replicaModeMap": modes, "snapshots": snapshots,
		"started": true, "storageIP": "10.1.0.1",
	}
	return o
}

func replicaName(i, n int) string { return fmt.Sprintf("%s-r-%08d", VolumeName(i), n) }

func replica(size Size, i, n int) map[string]any {
	at := (i + n) % size.Nodes
	o := object("Replica", replicaName(i, n), NodeName(at))
	o["spec"] = map[string]any{
		"active": true, "backingImage": "", "dataDirectoryName": replicaName(i, n), "dataEngine": "v1", "desireState": "running", "diskID": "2d7f8e0a-53a6-4b5e-9d3d-0a1c9b6e4f11", "diskPath": "/var/lib/longhorn/",
		"engineName": VolumeName(i) + "-e-0", "evictionRequested": false, "failedAt": "", "hardNodeAffinity": "", "healthyAt": "2026-03-02T09:14:07Z", "image": "longhornio/longhorn-engine:v1.7.2", "lastFailedAt": "",
		"lastHealthyAt": "2026-03-02T09:14:07Z", "logRequested": false, "nodeID": NodeName(at), "rebuildRetryCount": 0, "revisionCounterDisabled": true, "salvageRequested": false, "volumeName": VolumeName(i), "volumeSize": "10737418240",
	}
	o["status"] = map[string]any{
		"currentImage": "longhornio/longhorn-engine:v1.7.2", "currentState": "running", "instanceManagerName": managerName(at), "ip": "10.1.0.1", "logFetched": false, "ownerID": NodeName(at), "port": 10000, "started": true, "storageIP": "10.1.0.1",
	}
	return o
}

func managerName(node int) string { return fmt.Sprintf("instance-manager-%03d", node) }

func instanceManager(size Size, node int) map[string]any {
	engines, copies := map[string]any{}, map[string]any{}
	process := func(name string) map[string]any {
		return map[string]any{
			"spec":   map[string]any{"dataEngine": "v1", "name": name},
			"status": map[string]any{"conditions": nil, "endpoint": "", "errorMsg": "", "listen": "", "portEnd": 10000, "portStart": 10000, "resourceVersion": 1, "state": "running", "type": "engine"},
		}
	}
	for i := range size.Volumes {
		if i%size.Nodes == node {
			engines[VolumeName(i)+"-e-0"] = process(VolumeName(i) + "-e-0")
		}
		for n := range replicas {
			if (i+n)%size.Nodes == node {
				copies[replicaName(i, n)] = process(replicaName(i, n))
			}
		}
	}
	o := object("InstanceManager", managerName(node), NodeName(node))
	o["spec"] = map[string]any{"dataEngine": "v1", "image": "longhornio/longhorn-instance-manager:v1.7.2", "nodeID": NodeName(node), "type": "aio"}
	o["status"] = map[string]any{"apiVersion": 5, "apiMinVersion": 1, "currentState": "running", "instanceEngines": engines, "instanceReplicas": copies, "ip": "10.1.0.1", "ownerID": NodeName(node)}
	return o
}

package catalog

import "testing"

func TestBoolValues(t *testing.T) {
	for _, name := range []Name{V1DataEngine, V2DataEngine, DisableSnapshotPurge, StorageNetworkForRWX, AutoDeletePod} {
		checkValues(t, name, `must be "true" or "false"`, accepted{
			"true": "true", " True ": "true", "1": "true", "false": "false", "0": "false",
		}, refused{"": "", "on": "", "yes": "", `{"v2":"true"}`: "", "kube-system/storage-net": ""})
	}
}

func TestDataEngineOfInstanceManagers(t *testing.T) {
	nodes := Nodes{"no-v2": {DisabledV2: true}}
	checkWants(t, V1DataEngine, nodes, []wanted{
		{"true", managerV1, "true"}, {"F", managerV1, "false"}, {"", managerV1, nothing},
		{"false", managerV2, nothing}, {"true", Component{Kind: ShareManager, Engine: EngineV1}, nothing},
		{"true", on("no-v2", managerV1), "true"},
	})
	checkWants(t, V2DataEngine, nodes, []wanted{
		{"1", managerV2, "true"}, {"false", managerV2, "false"}, {"false", managerV1, nothing}, {"true", on("no-v2", managerV2), "false"},
	})
}

package catalog

import "testing"

func TestLimitValues(t *testing.T) {
	for _, name := range []Name{ReplicaRebuildLimit, BackingImageLimit} {
		checkValues(t, name, "must be a whole number from 0 to 2147483647", accepted{
			"0": "0", "-0": "0", "05": "5", "+5": "5",
		}, refused{"": "", "-1": "", "5.0": "", "0x5": "", "1_000": "", "99999999999999999999": ""})
	}
}

func TestProbes(t *testing.T) {
	for _, name := range []Name{InstanceManagerProbeTimeout, EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures} {
		checkValues(t, name, "must be a whole number from 1 to 60", accepted{
			"1": "1", "60": "60", " 05 ": "5",
		}, refused{"": "", "0": "", "61": "", "10s": ""})
	}
	checkWants(t, InstanceManagerProbeTimeout, nil, []wanted{
		{"010", managerV1, "10"}, {"10", managerV2, "10"}, {"10", engineImages, nothing}, {"ten", managerV1, nothing},
	})
	for _, name := range []Name{EngineImageProbePeriod, EngineImageProbeTimeout, EngineImageProbeFailures} {
		checkWants(t, name, nil, []wanted{
			{"05", engineImages, "5"}, {"5", plugin, nothing}, {"5", managerV1, nothing},
			{"5", Component{Kind: Deployment, Name: "engine-image-ei-1"}, nothing},
		})
	}
}

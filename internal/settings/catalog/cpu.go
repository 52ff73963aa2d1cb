package catalog

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The settings that reserve CPU for instance managers. Source: longhorn-manager
// controller/controller_manager.go, GetInstanceManagerCPURequirement.
const (
	// V2GuaranteedCPU is in thousandths of a CPU, for the v2 data engine only.
	V2GuaranteedCPU Name = "v2-data-engine-guaranteed-instance-manager-cpu"
	// GuaranteedCPU is a percentage of the allocatable CPU of the node. Before 1.10,
	// with V2GuaranteedCPU, GuaranteedCPU is for the v1 data engine only.
	GuaranteedCPU Name = "guaranteed-instance-manager-cpu"
)

// cpuFamily has the older setting first, because the first decides if Longhorn has both.
func cpuFamily() []Definition {
	const affects = "instance-manager pods"
	v2 := wholeNumber(1000, unbounded) // Longhorn's webhook enforces the maximum 8000 before 1.9
	return []Definition{
		{
			Name: V2GuaranteedCPU, Default: "1250", Normalize: v2, Form: wholeNumberForm(1000, unbounded),
			Since: "1.6", Until: "1.10", ReplacedBy: GuaranteedCPU, DangerZone: true, Gate: InstanceManagerIdle,
			Trait: CPURequest, Wants: wants(instanceManagerOf(EngineV2), func(value string) (string, error) {
				milliCPU, err := v2(value)
				return milliCPU + "m", err
			}),
			Affects: affects + " of the v2 data engine",
		},
		{
			// Every version accepts one number; 1.10 and later apply the number to both engines.
			Name: GuaranteedCPU, Default: "12", OtherDefaults: []string{`{"v1":"12","v2":"12"}`}, Normalize: guaranteedCPU.normalize,
			Form: guaranteedCPU.allowed(), Since: "1.5", DangerZone: true, Gate: InstanceManagerIdle,
			Trait: CPURequest, Wants: wantsCPU,
			Affects: affects,
		},
	}
}

var guaranteedCPU = perEngine{
	engines: []string{EngineV1, EngineV2}, one: number(40),
	form: "must be a number from 0 to 40", each: `{"v1":"12","v2":"12"}`,
}

// wantsCPU computes and rounds as Longhorn does: a pod that differs by a thousandth would restart forever.
// The number of cores is the trait of the pod: if data-engine-number-of-cpu-cores differs, that setting restarts the pod.
func wantsCPU(value string, c Component, nodes Nodes) (string, bool) {
	percent, ok := guaranteedCPU.of(value, c.Engine)
	if !ok || !instanceManager(c) {
		return "", false
	}
	node := nodes[c.Node]
	request := node.InstanceManagerMilliCPU
	if request <= 0 {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil || node.AllocatableMilliCPU <= 0 {
			return "", false
		}
		request = int64(math.Round(float64(node.AllocatableMilliCPU) * share / 100))
	}
	return MilliCPU(CoresMilliCPU(request, c.Built[CPUCores])), true
}

// CoresMilliCPU is the request of an instance manager with the number of cores in a CPUCores trait:
// at least the cores, and a whole number, because the kubelet pins only whole cores.
func CoresMilliCPU(request int64, trait string) int64 {
	cores, err := strconv.ParseInt(trait, 10, 32)
	if err != nil || cores <= 0 {
		return request
	}
	whole := (request + 999) / 1000
	return 1000 * max(cores, whole)
}

// CPUTrait is the CPU request of a container in thousandths: 1250m. No request is 0m.
func CPUTrait(q resource.Quantity) string { return MilliCPU(q.MilliValue()) }

func MilliCPU(n int64) string { return fmt.Sprintf("%dm", n) }

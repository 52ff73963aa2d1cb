package sandbox

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// instanceManagerResources follows GetInstanceManagerCPURequirement: of v1 a share
// of what the node has to give, unless the node says how much; of v2 a number.
func (s *survey) instanceManagerResources(node, engine string) (corev1.ResourceRequirements, error) {
	name := "guaranteed-instance-manager-cpu"
	if engine == engineV2 {
		name = "v2-data-engine-guaranteed-instance-manager-cpu"
	}
	amount, err := strconv.ParseFloat(s.buildSettings[name], 64)
	if err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("reading setting %s: %w", name, err)
	}
	milli := int64(amount)
	if engine == engineV1 {
		of := s.nodes[node]
		milli = int64(math.Round(float64(of.Status.Allocatable.Cpu().MilliValue()) * amount / 100))
		if own := s.cpuOfNode(node); own != 0 {
			milli = own
		}
	}
	if milli == 0 {
		return corev1.ResourceRequirements{}, nil
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)},
	}, nil
}

// cpuOfNode is what Longhorn's own object for the node asks for, in thousandths; 0 is nothing.
func (s *survey) cpuOfNode(node string) int64 {
	for _, n := range s.storageNodes {
		if n.GetName() == node {
			milli, _, _ := unstructured.NestedInt64(n.Object, "spec", "instanceManagerCPURequest")
			return milli
		}
	}
	return 0
}

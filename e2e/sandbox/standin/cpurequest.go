package standin

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// instanceManagerResources follows GetInstanceManagerCPURequirement: a share of what
// the node has to give, unless the node says how much; of v2 a number before 1.10, and
// from 1.12.1 at least the number of cores, and whole ones.
func (s *survey) instanceManagerResources(node, engine string) (corev1.ResourceRequirements, error) {
	name := release.GuaranteedCPU
	if _, former := s.settings[release.FormerCPU]; former && engine == engineV2 {
		name = release.FormerCPU
	}
	amount, err := strconv.ParseFloat(ofEngine(s.settings[name], engine), 64)
	if err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("reading setting %s: %w", name, err)
	}
	milli := int64(amount)
	if name == release.GuaranteedCPU {
		of := s.nodes[node]
		milli = int64(math.Round(float64(of.Status.Allocatable.Cpu().MilliValue()) * amount / 100))
		if own := s.cpuOfNode(node); own != 0 {
			milli = own
		}
	}
	if cores, err := strconv.ParseInt(ofV2(s.settings[release.CpuCores]), 10, 64); err == nil && cores > 0 && engine == engineV2 {
		milli = 1000 * max(cores, (milli+999)/1000)
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

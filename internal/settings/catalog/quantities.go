package catalog

import (
	"math"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityForm refuses negative and long numbers: Kubernetes' parser takes half a minute for 1e1000000, and accepts it.
var quantityForm = regexp.MustCompile(`^\+?[0-9]{0,19}(\.[0-9]{0,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

func ParseQuantity(text string) (resource.Quantity, bool) {
	if !quantityForm.MatchString(text) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil && q.CmpInt64(math.MaxInt64) < 0
}

// canonical is a quantity as the API server stores it in pods, rounded up to a thousandth.
// Equal quantities have equal text: 1024Mi and 1Gi, 0.1 and 100m.
func canonical(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	q.RoundUp(resource.Milli)
	format := resource.BinarySI
	if name == corev1.ResourceCPU {
		format = resource.DecimalSI
	}
	return *resource.NewDecimalQuantity(*q.AsDec(), format)
}

func quantityTexts(resources corev1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, q := range resources {
		q = canonical(name, q)
		texts[string(name)] = q.String()
	}
	return texts
}

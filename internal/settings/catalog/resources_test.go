package catalog

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestCSIResourcesValues(t *testing.T) {
	const form = `must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`
	attacher := func(requirements string) string { return `{"csi-attacher":` + requirements + `}` }
	one := attacher(`{"limits":{"cpu":"100m"}}`)
	checkValues(t, CSIResources, form, accepted{
		"": "", " \n": "", "{}": "", attacher(`{}`): "", attacher(`{"limits":{},"requests":null}`): "", one: one,
		` {"csi-resizer": {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"cpu": "2"}}, "csi-attacher": {"limits": {"cpu": "1"}}}`: `{"csi-attacher":{"limits":{"cpu":"1"}},"csi-resizer":{"limits":{"cpu":"2"},"requests":{"cpu":"1","memory":"1Gi"}}}`,
		attacher(`{"limits":{"cpu":0.5,"memory":1048576}}`):                                         attacher(`{"limits":{"cpu":"500m","memory":"1Mi"}}`), // numbers, as in Kubernetes
		attacher(`{"limits":{"cpu":"1500m","memory":"1024Mi"},"requests":{"memory":"1073741824"}}`): attacher(`{"limits":{"cpu":"1500m","memory":"1Gi"},"requests":{"memory":"1Gi"}}`),
		attacher(`{"limits":{"cpu":"0.0001"}}`):                                                     attacher(`{"limits":{"cpu":"1m"}}`), // rounded as in pods
		attacher(`{"limits":{"cpu":"2048"}}`):                                                       attacher(`{"limits":{"cpu":"2048"}}`),
		attacher(`{"limits":{"ephemeral-storage":"1Gi"}}`):                                          attacher(`{"limits":{"ephemeral-storage":"1Gi"}}`),
		attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1000m"}}`):                               attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}`),
		`{"node-driver-registrar":{"limits":{"cpu":"1"}},"longhorn-liveness-probe":{"limits":{"cpu":"1"}},"longhorn-csi-plugin":{"limits":{"cpu":"1"}}}`: `{"longhorn-csi-plugin":{"limits":{"cpu":"1"}},"longhorn-liveness-probe":{"limits":{"cpu":"1"}},"node-driver-registrar":{"limits":{"cpu":"1"}}}`,
	}, refused{
		attacher(`{"claims":[]}`): "", "null": "", `{"csi-attacher":`: "", "csi-attacher: {}": "",
		attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1001m"}}`): "csi-attacher: the request of cpu must not be more than its limit",
		`{"longhorn-manager":{}}`:                                     `container "longhorn-manager" must be one of csi-attacher, csi-provisioner, csi-resizer, csi-snapshotter, longhorn-csi-plugin, longhorn-liveness-probe, node-driver-registrar`,
		`{"csi-attacher":{},"csi-attacher":{}}`:                       "a name occurs twice",
		attacher(`{"claims":{}}`):                                     `csi-attacher: "claims" must be requests or limits`,
		attacher(`{"Limits":{"cpu":"1"}}`):                            `csi-attacher: "Limits" must be requests or limits`,
		attacher(`{"limits":{"CPU":"1"}}`):                            `csi-attacher: limits: "CPU" must be cpu, memory or ephemeral-storage`,
		attacher(`{"limits":{"hugepages-2Mi":"2Mi"}}`):                `csi-attacher: limits: "hugepages-2Mi" must be cpu, memory or ephemeral-storage`,
		attacher(`{"requests":{"cpu":"-1"}}`):                         `csi-attacher: requests: cpu: "-1" must be a quantity like 100m or 128Mi`,
		attacher(`{"requests":{"memory":"much"}}`):                    `csi-attacher: requests: memory: "much" must be a quantity like 100m or 128Mi`,
		attacher(`{"requests":{"memory":null}}`):                      `csi-attacher: requests: memory: "null" must be a quantity like 100m or 128Mi`,
		attacher(`{"requests":{"memory":"9223372036854775807"}}`):     `csi-attacher: requests: memory: "9223372036854775807" must be a quantity like 100m or 128Mi`,
	})
}

// Kubernetes' parser takes half a minute for these numbers, more than the timeout of a webhook.
func TestLongNumbersAreRefusedFast(t *testing.T) {
	started := time.Now()
	for _, quantity := range []string{"1e1000000", "1E-1000000", strings.Repeat("9", 1<<20)} {
		_, err := normalizeCSIResources(`{"csi-attacher":{"limits":{"cpu":"` + quantity + `"}}}`)
		must.Check(t, err != nil, "%.20s is accepted", quantity)
	}
	took := time.Since(started)
	must.Check(t, took <= 5*time.Second, "it took %v", took)
}

func TestCSIResourcesAreAskedOfTheirTemplates(t *testing.T) {
	const value = `{"csi-attacher":{"limits":{"cpu":"1"}},"node-driver-registrar":{"limits":{"cpu":"2"}},"longhorn-csi-plugin":{"limits":{"cpu":"3"}}}`
	tests := []wanted{
		{value, attacher, `{"csi-attacher":{"limits":{"cpu":"1"}}}`},
		{value, plugin, `{"longhorn-csi-plugin":{"limits":{"cpu":"3"}},"node-driver-registrar":{"limits":{"cpu":"2"}}}`},
		{value, Component{Kind: Deployment, Name: "csi-resizer"}, ""}, {"", attacher, ""}, {"{", attacher, nothing},
		{value, Component{Kind: Deployment, Name: "longhorn-ui"}, nothing}, {value, engineImages, nothing}, {value, managerV1, nothing},
	}
	for name, kinds := range map[string][]ComponentKind{"csi-attacher": {DaemonSetComponent, ShareManager}, "longhorn-csi-plugin": {Deployment, ShareManager}} {
		for _, kind := range kinds { // the name of a template, but another kind
			tests = append(tests, wanted{value, Component{Kind: kind, Name: name}, nothing})
		}
	}
	checkWants(t, CSIResources, nil, tests)
}

func TestResourcesOfTemplates(t *testing.T) {
	got := ResourcesTrait(map[string]corev1.ResourceRequirements{
		"csi-attacher": {Requests: corev1.ResourceList{"cpu": resource.MustParse("0.1"), "memory": resource.MustParse("2048Ki")}},
		"csi-resizer":  {},
		"other":        {Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	})
	must.Equal(t, got, `{"csi-attacher":{"requests":{"cpu":"100m","memory":"2Mi"}}}`)
}

// Kubernetes accepts a container with every accepted value, and stores it as the setting asks: no pod restarts for another spelling.
func TestAcceptedResourcesMakeValidPods(t *testing.T) {
	quantity := rapid.SampledFrom([]string{`"1"`, `"100m"`, `"0.1"`, `1`, `"1e3"`, `"1Gi"`, `"1024Mi"`, `"1.5Gi"`, `"1n"`, `"-1"`, `"0"`, `"1E"`, `"8Ei"`, `"7Ei"`, `"1e30"`, `null`, `""`})
	list := func(t *rapid.T) string {
		return `"` + rapid.SampledFrom([]string{"limits", "requests"}).Draw(t, "list") + `":{"` +
			rapid.SampledFrom([]string{"cpu", "memory", "ephemeral-storage"}).Draw(t, "resource") + `":` + quantity.Draw(t, "quantity") + `}`
	}
	rapid.Check(t, func(t *rapid.T) {
		value := `{"` + rapid.SampledFrom(csiContainer).Draw(t, "container") + `":{` + list(t) + `,` + list(t) + `}}`
		parsed, err := ParseCSIResources(value)
		if err != nil {
			return
		}
		for container, r := range parsed {
			for name, request := range r.Requests {
				if limit, limited := r.Limits[name]; request.Sign() < 0 || limited && request.Cmp(limit) > 0 {
					t.Errorf("%s: %s: requests %s of %s, limited to %s", value, container, request.String(), name, limit.String())
				}
			}
			for name, limit := range r.Limits {
				again, err := resource.ParseQuantity(limit.String())
				must.Check(t, err == nil && limit.Sign() >= 0 && again.Cmp(limit) == 0, "%s: %s: limited to %s of %s, %v", value, container, limit.String(), name, err)
			}
		}
		normal := ResourcesTrait(parsed)
		again, err := ParseCSIResources(normal)
		must.Check(t, err == nil && ResourcesTrait(again) == normal, "%s became %s and then %s, %v", value, normal, ResourcesTrait(again), err)
	})
}

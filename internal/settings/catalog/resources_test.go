package catalog

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestSpellingsOfCSIResources(t *testing.T) {
	const form = `must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`
	attacher := func(requirements string) string { return `{"csi-attacher":` + requirements + `}` }
	checkSpellings(t, CSIResources, map[string]spelled{
		"none":                        {value: ""},
		"blank":                       {value: " \n"},
		"an empty object":             {value: "{}"},
		"a container without any":     {value: attacher(`{}`)},
		"lists without any":           {value: attacher(`{"limits":{},"requests":null}`)},
		"one":                         {value: attacher(`{"limits":{"cpu":"100m"}}`), normal: attacher(`{"limits":{"cpu":"100m"}}`)},
		"in order, without space":     {value: ` {"csi-resizer": {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"cpu": "2"}}, "csi-attacher": {"limits": {"cpu": "1"}}}`, normal: `{"csi-attacher":{"limits":{"cpu":"1"}},"csi-resizer":{"limits":{"cpu":"2"},"requests":{"cpu":"1","memory":"1Gi"}}}`},
		"numbers, as Kubernetes has":  {value: attacher(`{"limits":{"cpu":0.5,"memory":1048576}}`), normal: attacher(`{"limits":{"cpu":"500m","memory":"1Mi"}}`)},
		"spelled by the value":        {value: attacher(`{"limits":{"cpu":"1500m","memory":"1024Mi"},"requests":{"memory":"1073741824"}}`), normal: attacher(`{"limits":{"cpu":"1500m","memory":"1Gi"},"requests":{"memory":"1Gi"}}`)},
		"rounded as in pods":          {value: attacher(`{"limits":{"cpu":"0.0001"}}`), normal: attacher(`{"limits":{"cpu":"1m"}}`)},
		"thousands of CPUs":           {value: attacher(`{"limits":{"cpu":"2048"}}`), normal: attacher(`{"limits":{"cpu":"2048"}}`)},
		"room on disk":                {value: attacher(`{"limits":{"ephemeral-storage":"1Gi"}}`), normal: attacher(`{"limits":{"ephemeral-storage":"1Gi"}}`)},
		"the plugin's containers":     {value: `{"node-driver-registrar":{"limits":{"cpu":"1"}},"longhorn-liveness-probe":{"limits":{"cpu":"1"}},"longhorn-csi-plugin":{"limits":{"cpu":"1"}}}`, normal: `{"longhorn-csi-plugin":{"limits":{"cpu":"1"}},"longhorn-liveness-probe":{"limits":{"cpu":"1"}},"node-driver-registrar":{"limits":{"cpu":"1"}}}`},
		"a request as high as limits": {value: attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1000m"}}`), normal: attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}`)},
		"a request above the limit":   {value: attacher(`{"limits":{"cpu":"1"},"requests":{"cpu":"1001m"}}`), problem: form + ": csi-attacher: the request of cpu must not be more than its limit"},
		"a container nobody knows":    {value: `{"longhorn-manager":{}}`, problem: form + `: container "longhorn-manager" must be one of csi-attacher, csi-provisioner, csi-resizer, csi-snapshotter, longhorn-csi-plugin, longhorn-liveness-probe, node-driver-registrar`},
		"a container twice":           {value: `{"csi-attacher":{},"csi-attacher":{}}`, problem: form + ": a name is there twice"},
		"a list nobody knows":         {value: attacher(`{"claims":{}}`), problem: form + `: csi-attacher: "claims" must be requests or limits`},
		"a list in upper case":        {value: attacher(`{"Limits":{"cpu":"1"}}`), problem: form + `: csi-attacher: "Limits" must be requests or limits`},
		"claims, as Kubernetes has":   {value: attacher(`{"claims":[]}`), problem: form},
		"a resource nobody knows":     {value: attacher(`{"limits":{"CPU":"1"}}`), problem: form + `: csi-attacher: limits: "CPU" must be cpu, memory or ephemeral-storage`},
		"huge pages":                  {value: attacher(`{"limits":{"hugepages-2Mi":"2Mi"}}`), problem: form + `: csi-attacher: limits: "hugepages-2Mi" must be cpu, memory or ephemeral-storage`},
		"a negative quantity":         {value: attacher(`{"requests":{"cpu":"-1"}}`), problem: form + `: csi-attacher: requests: cpu: "-1" must be a quantity like 100m or 128Mi`},
		"no quantity":                 {value: attacher(`{"requests":{"memory":"much"}}`), problem: form + `: csi-attacher: requests: memory: "much" must be a quantity like 100m or 128Mi`},
		"null":                        {value: attacher(`{"requests":{"memory":null}}`), problem: form + `: csi-attacher: requests: memory: "null" must be a quantity like 100m or 128Mi`},
		"more than a number can hold": {value: attacher(`{"requests":{"memory":"9223372036854775807"}}`), problem: form + `: csi-attacher: requests: memory: "9223372036854775807" must be a quantity like 100m or 128Mi`},
		"no object":                   {value: "null", problem: form},
		"half an object":              {value: `{"csi-attacher":`, problem: form},
		"YAML":                        {value: "csi-attacher: {}", problem: form},
	})
}

// Kubernetes' parser takes half a minute for it: longer than a webhook may.
func TestLongNumbersAreRefusedFast(t *testing.T) {
	started := time.Now()
	for _, quantity := range []string{"1e1000000", "1E-1000000", strings.Repeat("9", 1<<20)} {
		if _, err := normalizeCSIResources(`{"csi-attacher":{"limits":{"cpu":"` + quantity + `"}}}`); err == nil {
			t.Errorf("%.20s is accepted", quantity)
		}
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCSIResourcesAreAskedOfTheirTemplates(t *testing.T) {
	const value = `{"csi-attacher":{"limits":{"cpu":"1"}},"node-driver-registrar":{"limits":{"cpu":"2"}},"longhorn-csi-plugin":{"limits":{"cpu":"3"}}}`
	checkWants(t, CSIResources, nil, map[string]asked{
		"a Deployment":             {value: value, component: attacher, want: `{"csi-attacher":{"limits":{"cpu":"1"}}}`},
		"the DaemonSet":            {value: value, component: plugin, want: `{"longhorn-csi-plugin":{"limits":{"cpu":"3"}},"node-driver-registrar":{"limits":{"cpu":"2"}}}`},
		"one that is not named":    {value: value, component: Component{Kind: Deployment, Name: "csi-resizer"}, want: ""},
		"taken back":               {value: "", component: attacher, want: ""},
		"of another kind":          {value: value, component: Component{Kind: DaemonSetComponent, Name: "csi-attacher"}, none: true},
		"of another kind, too":     {value: value, component: Component{Kind: Deployment, Name: "longhorn-csi-plugin"}, none: true},
		"a Deployment of others":   {value: value, component: Component{Kind: Deployment, Name: "longhorn-ui"}, none: true},
		"engine images":            {value: value, component: engineImages, none: true},
		"instance managers":        {value: value, component: managerV1, none: true},
		"not well formed":          {value: "{", component: attacher, none: true},
		"a pod that is named so":   {value: value, component: Component{Kind: ShareManager, Name: "csi-attacher"}, none: true},
		"a pod named as DaemonSet": {value: value, component: Component{Kind: ShareManager, Name: "longhorn-csi-plugin"}, none: true},
	})
}

func TestResourcesOfTemplates(t *testing.T) {
	got := ResourcesTrait(map[string]corev1.ResourceRequirements{
		"csi-attacher": {Requests: corev1.ResourceList{"cpu": resource.MustParse("0.1"), "memory": resource.MustParse("2048Ki")}},
		"csi-resizer":  {},
		"somebody's":   {Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	})
	if want := `{"csi-attacher":{"requests":{"cpu":"100m","memory":"2Mi"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever is accepted, Kubernetes takes in a container, and has it as the
// setting asks for it: nothing is restarted for another spelling.
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
				if again, err := resource.ParseQuantity(limit.String()); err != nil || limit.Sign() < 0 || again.Cmp(limit) != 0 {
					t.Errorf("%s: %s: limited to %s of %s, %v", value, container, limit.String(), name, err)
				}
			}
		}
		normal := ResourcesTrait(parsed)
		again, err := ParseCSIResources(normal)
		if err != nil || ResourcesTrait(again) != normal {
			t.Errorf("%s became %s and then %s, %v", value, normal, ResourcesTrait(again), err)
		}
	})
}

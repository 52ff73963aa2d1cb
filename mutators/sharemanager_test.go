package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestShareManager(t *testing.T) {
	const fqdn = "nfs://pvc-a.longhorn-system.svc.corp.example/pvc-a"
	replace := func(want string) string {
		return `[{"op":"replace","path":"/status/endpoint","value":"` + want + `"}]`
	}
	headless := &storage.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "None"}
	address := &storage.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"}
	for name, test := range map[string]struct {
		endpoint string
		service  *storage.Service
		want     ruling
	}{
		"longhorn#9272: None is no host":          {"nfs://None/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://None/pvc-a", replace(fqdn)}},
		"None, and the Service just gone":         {"nfs://None/pvc-a", nil, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://None/pvc-a", replace(fqdn)}},
		"Longhorn's fixed cluster domain":         {"nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a", replace(fqdn)}},
		"an address of before, now headless":      {"nfs://10.43.0.9/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://10.43.0.9/pvc-a", replace(fqdn)}},
		"a name that nobody publishes":            {fqdn, address, ruling{Mutated, ReasonEndpoint, "nfs://10.43.0.9/pvc-a instead of " + fqdn, replace("nfs://10.43.0.9/pvc-a")}},
		"None, though the Service has an address": {"nfs://None/pvc-a", address, ruling{Mutated, ReasonEndpoint, "nfs://10.43.0.9/pvc-a instead of nfs://None/pvc-a", replace("nfs://10.43.0.9/pvc-a")}},
		"IPv6":                                {"nfs://fd00::9/pvc-a", &storage.Service{Volume: "pvc-a", ClusterIP: "fd00::9"}, ruling{Mutated, ReasonEndpoint, "nfs://[fd00::9]/pvc-a instead of nfs://fd00::9/pvc-a", replace("nfs://[fd00::9]/pvc-a")}},
		"as it should be, headless":           {fqdn, headless, ruling{Unchanged, ReasonAsItShouldBe, fqdn, ""}},
		"as it should be, address":            {"nfs://10.43.0.9/pvc-a", address, ruling{Unchanged, ReasonAsItShouldBe, "nfs://10.43.0.9/pvc-a", ""}},
		"no endpoint while the share is down": {"", headless, ruling{Unchanged, ReasonNoEndpoint, "", ""}},
		"no Service, an address":              {"nfs://10.43.0.9/pvc-a", nil, ruling{Unchanged, ReasonAsItShouldBe, "the volume has no Service", ""}},
		"a Service without an address yet":    {"nfs://10.43.0.9/pvc-a", &storage.Service{Name: "pvc-a"}, ruling{Unchanged, ReasonServiceIsUnready, "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			sm := view[ShareManager](t, `{"metadata":{"name":"pvc-a"},"status":{"endpoint":"`+test.endpoint+`"}}`)
			test.want.check(t, MutateShareManager(sm, "longhorn-system", test.service, "corp.example"))
		})
	}
}

func TestShareManagerPatchesAreMinimalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := rapid.SampledFrom([]*storage.Service{
			nil,
			{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a"},
			{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "None"},
			{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"},
			{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "fd00::9"},
		}).Draw(t, "service")
		endpoint := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "nfs://None/pvc-a", "nfs://10.43.0.9/pvc-a", "nfs://[fd00::9]/pvc-a"})).Draw(t, "endpoint")
		object := map[string]any{
			"metadata": map[string]any{"name": "pvc-a", "annotations": map[string]any{"a": "b"}},
			"status":   map[string]any{"state": "running", "endpoint": endpoint},
		}
		rule := func(sm ShareManager) Result {
			r := MutateShareManager(sm, "longhorn-system", service, "cluster.local")
			if (service == nil || service.ClusterIP == "") && r.Outcome == Unchanged {
				r.Reason = ReasonAsItShouldBe
			}
			return r
		}
		checkMinimal(t, object, rule, []string{"status", "endpoint"})
	})
}

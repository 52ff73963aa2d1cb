package mutators

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

func TestShareManager(t *testing.T) {
	const fqdn = "nfs://pvc-a.longhorn-system.svc.corp.example/pvc-a"
	replace := func(want string) string { return `[{"op":"replace","path":"/status/endpoint","value":"` + want + `"}]` }
	headless := &rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "None"}
	address := &rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"}
	for name, test := range map[string]struct {
		endpoint string
		service  *rwx.Service
		want     ruling
	}{
		"longhorn#9272: None":                 {"nfs://None/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://None/pvc-a", replace(fqdn)}},
		"None, Service gone":                  {"nfs://None/pvc-a", nil, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://None/pvc-a", replace(fqdn)}},
		"Longhorn's fixed cluster domain":     {"nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a", replace(fqdn)}},
		"address, now headless":               {"nfs://10.43.0.9/pvc-a", headless, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://10.43.0.9/pvc-a", replace(fqdn)}},
		"name, Service with address":          {fqdn, address, ruling{Mutated, ReasonEndpoint, "nfs://10.43.0.9/pvc-a instead of " + fqdn, replace("nfs://10.43.0.9/pvc-a")}},
		"None, Service with address":          {"nfs://None/pvc-a", address, ruling{Mutated, ReasonEndpoint, "nfs://10.43.0.9/pvc-a instead of nfs://None/pvc-a", replace("nfs://10.43.0.9/pvc-a")}},
		"None, Service without an address":    {"nfs://None/pvc-a", &rwx.Service{Name: "pvc-a"}, ruling{Mutated, ReasonEndpoint, fqdn + " instead of nfs://None/pvc-a", replace(fqdn)}},
		"IPv6":                                {"nfs://fd00::9/pvc-a", &rwx.Service{Volume: "pvc-a", ClusterIP: "fd00::9"}, ruling{Mutated, ReasonEndpoint, "nfs://[fd00::9]/pvc-a instead of nfs://fd00::9/pvc-a", replace("nfs://[fd00::9]/pvc-a")}},
		"up to date, headless":                {fqdn, headless, ruling{Unchanged, ReasonUpToDate, fqdn, ""}},
		"up to date, address":                 {"nfs://10.43.0.9/pvc-a", address, ruling{Unchanged, ReasonUpToDate, "nfs://10.43.0.9/pvc-a", ""}},
		"no endpoint while the share is down": {"", headless, ruling{Unchanged, ReasonNoEndpoint, "", ""}},
		"no Service, an address":              {"nfs://10.43.0.9/pvc-a", nil, ruling{Unchanged, ReasonUpToDate, "the volume has no Service", ""}},
		"a Service without an address yet":    {"nfs://10.43.0.9/pvc-a", &rwx.Service{Name: "pvc-a"}, ruling{Unchanged, ReasonServiceIsUnready, "", ""}},
	} {
		sm := view[ShareManager](t, `{"metadata":{"name":"pvc-a"},"status":{"endpoint":"`+test.endpoint+`"}}`)
		test.want.check(t, name, MutateShareManager(sm, "longhorn-system", test.service, "corp.example"))
	}
}

func TestSettingStatusIsHeld(t *testing.T) {
	const held = "waits for pvc-a"
	for applied, want := range map[string]ruling{
		"true":  {Mutated, ReasonNotAppliedYet, held, `[{"op":"replace","path":"/status/applied","value":false}]`},
		"false": {Unchanged, ReasonUpToDate, "", ""},
	} {
		status := view[SettingStatus](t, `{"status":{"applied":`+applied+`}}`)
		want.check(t, applied, MutateSettingStatus(status, held))
		ruling{Unchanged, ReasonUpToDate, "", ""}.check(t, "not held", MutateSettingStatus(status, ""))
	}
}

func TestShareManagerPatchesAreMinimalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := &rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a"}
		if service.ClusterIP = rapid.SampledFrom([]string{"no Service", "", "None", "10.43.0.9", "fd00::9"}).Draw(t, "clusterIP"); service.ClusterIP == "no Service" {
			service = nil
		}
		endpoint := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "nfs://None/pvc-a", "nfs://10.43.0.9/pvc-a", "nfs://[fd00::9]/pvc-a"})).Draw(t, "endpoint")
		object := map[string]any{
			"metadata": map[string]any{"name": "pvc-a", "annotations": map[string]any{"a": "b"}},
			"status":   map[string]any{"state": "running", "endpoint": endpoint},
		}
		rule := func(sm ShareManager) Result {
			r := MutateShareManager(sm, "longhorn-system", service, "cluster.local")
			if (service == nil || service.ClusterIP == "") && r.Outcome == Unchanged {
				r.Reason = ReasonUpToDate
			}
			return r
		}
		checkMinimal(t, object, rule, []string{"status", "endpoint"})
	})
}

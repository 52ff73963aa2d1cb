package main

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// A new rule is one file and one row: entry, rights and page follow from the row.
func TestARowIsInManifestsRightsAndPage(t *testing.T) {
	row := webhook.Route{
		Part: webhook.PartNFS, For: "new objects", Down: "allowed",
		Entry:   registration.Entry{Path: "/validate/new-objects", Rules: registration.Rules(registration.Created("new.io", "v1", "objects"))},
		Cluster: []rbacv1.PolicyRule{{APIGroups: []string{"new.io"}, Resources: []string{"facts"}, Verbs: []string{"get"}}},
	}
	table := append(webhook.Installed(), row)
	_, validating := registration.Configurations(webhook.Entries(table, webhook.PartNFS))
	must.Equal(t, validating.Webhooks[len(validating.Webhooks)-1].Name, "new-objects.fairlead.io")
	rights, err := documents(webhookRights(table)["components/nfs/webhook-rbac.yaml"])
	must.Do(t, err)
	must.True(t, strings.Contains(string(rights), "  - new.io\n  resources:\n  - facts\n  verbs:\n  - get\n"), "got %s", rights)
	must.Do(t, os.Chdir("../.."))
	t.Cleanup(func() { must.Do(t, os.Chdir("manifests/generate")) })
	page, err := renderRoutes(table, routesPage)
	must.Do(t, err)
	must.True(t, strings.Contains(string(page), "| `new-objects` | new objects | allowed |\n"), "got %s", page)
}

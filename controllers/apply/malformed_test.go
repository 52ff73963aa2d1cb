package apply

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Regression: a record that can't be read stopped all settings, without a word in their status.
func TestMalformedRecordStopsOnlyTheNetwork(t *testing.T) {
	w := atRest(t, setting(class, ""), setting(catalog.EndpointNetworkForRWX, ""))
	change(w, longhorn.Name, func(r *v1alpha1.NetworkRollout) { r.Status.Clients.Network = "garbage" })
	w.setSystem(class, "high")
	w.setSystem(catalog.EndpointNetworkForRWX, "kube-system/one")
	w.comeToRest()
	w.Must(w.builtWith("high"))
	must.True(t, w.status(class).Applied, "the other setting is not applied")
	got := w.status(catalog.EndpointNetworkForRWX)
	must.Check(t, !got.Applied && strings.Contains(got.Conditions[0].Message, "status.clients.network of NetworkRollout longhorn"), "got %+v", got)
}

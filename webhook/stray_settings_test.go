package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

func strayReview(namespace string) string {
	return reviews.Of(reviews.Setting, fmt.Sprintf(`"resource":{"group":"fairlead.io","version":"v1alpha1","resource":"settings"},`+
		`"namespace":%q,"name":"priority-class","operation":"CREATE","object":{"metadata":{"name":"priority-class"},"value":"x"}`, namespace))
}

func TestStraySettingIsRefusedWithTheRightNamespace(t *testing.T) {
	h := newRig(t, fakeClient(t))
	got := h.ask(t, registration.StraySettingsPath, strayReview("default"))
	must.Check(t, !got.Allowed && strings.Contains(got.Result.Message, `in namespace "longhorn-system"`) && got.Result.Details.Causes[0].Field == "metadata.namespace",
		"got %+v", got)
	must.Check(t, h.ask(t, registration.StraySettingsPath, strayReview("longhorn-system")).Allowed, "refused where settings are read from")
}

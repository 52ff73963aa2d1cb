package webhook

import (
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// The match conditions of the webhook configurations save calls. `fairlead review` asks rules without them, so a rule
// allows what its conditions exclude, and reads nothing for the answer.
func TestRulesAllowWhatMatchConditionsExclude(t *testing.T) {
	const (
		badClaim  = `{"metadata":{"name":"data","annotations":{"fairlead.io/volume-network":"nfs"}}}`
		badSpec   = `{"backends":[{"address":"x"}]}`
		badVolume = `{"metadata":{"name":"pv-a"},"spec":{"csi":{"driver":"nfs.fairlead.io","volumeAttributes":{"share":"x"}}}}`
		network   = `{"metadata":{"name":"storage-net"},"spec":{"config":"{}"}}`
		tainted   = `{"metadata":{"name":"node-1"},"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service"}]}}`
	)
	setting := func(kind, operation, name, value, old string) string {
		text := func(value string) string {
			switch value {
			case "absent":
				return "null"
			case "unset":
				return `{"metadata":{"name":"` + name + `"}}`
			}
			return `{"metadata":{"name":"` + name + `"},"value":"` + value + `"}`
		}
		return settingReview(kind, operation, name, text(value)+`,"oldObject":`+text(old))
	}
	status := func(name, applied, was string) string {
		return reviews.Of(reviews.SystemSetting, `"subResource":"status","namespace":"longhorn-system","name":"`+name+`","operation":"UPDATE",`+
			`"object":{"status":{"applied":`+applied+`}},"oldObject":{"status":{"applied":`+was+`}}`)
	}
	unchanged := func(kind, object string) string {
		return reviews.Of(kind, `"namespace":"default","name":"x","operation":"UPDATE","object":`+object+`,"oldObject":`+object)
	}
	const outside = "auto-delete-pod-when-volume-detached-unexpectedly" // not in the danger zone
	rows := map[string]struct{ path, review string }{
		"setting of Longhorn outside the danger zone":           {settingsPath, setting(reviews.SystemSetting, "UPDATE", outside, "garbage", "true")},
		"deletion of a setting outside the danger zone":         {settingsPath, setting(reviews.SystemSetting, "DELETE", outside, "absent", "true")},
		"malformed value that stays":                            {settingsPath, setting(reviews.SystemSetting, "UPDATE", "storage-network", "kube-system", "kube-system")},
		"Fairlead's setting that stays without a value":         {settingsPath, setting(reviews.Setting, "UPDATE", "storage-network", "unset", "unset")},
		"Fairlead's setting created without a value":            {settingsPath, setting(reviews.Setting, "CREATE", "priority-class", "unset", "absent")},
		"Longhorn's setting created with its default":           {settingsPath, setting(reviews.SystemSetting, "CREATE", "guaranteed-instance-manager-cpu", "12", "absent")},
		"Longhorn's setting created with a version's default":   {settingsPath, setting(reviews.SystemSetting, "CREATE", "guaranteed-instance-manager-cpu", `{\"v1\":\"12\",\"v2\":\"12\"}`, "absent")},
		"stray setting whose value stays":                       {registration.StraySettingsPath, unchanged(reviews.Setting, `{"metadata":{"name":"priority-class"},"value":"x"}`)},
		"another DaemonSet in Longhorn's namespace":             {clientTemplatePath, reviews.Of(reviews.DaemonSet, `"namespace":"longhorn-system","name":"other","operation":"CREATE","object":{"spec":{"template":{"metadata":{}}}}`)},
		"status of a setting that chooses no network":           {settingStatusPath, status("priority-class", "true", "false")},
		"setting that stays applied":                            {settingStatusPath, status("storage-network-for-rwx-volume-enabled", "true", "true")},
		"network whose config stays":                            {registration.NetworksPath, unchanged(reviews.Network, network)},
		"claim whose annotations stay":                          {registration.VolumeNetworksPath, unchanged(reviews.Claim, badClaim)},
		"NFSService whose spec stays":                           {registration.NFSServicesPath, nfsServiceReview("UPDATE", badSpec, badSpec)},
		"volume that is mounted as before":                      {registration.NFSVolumesPath, unchanged(reviews.Volume, badVolume)},
		"volume of another driver":                              {registration.NFSVolumesPath, nfsVolumeReview("other.csi", `{"share":"x"}`, "")},
		"mount options of a volume of another driver":           {registration.NFSVolumeOptionsPath, nfsVolumeReview("other.csi", `{"share":"x"}`, "")},
		"node whose taint stays":                                {registration.NodesPath, unchanged(reviews.Node, tainted)},
		"attachment of a driver that is not protected":          {registration.AttachmentsPath, reviews.Of(reviews.Attachment, `"name":"x","operation":"CREATE","object":{"spec":{"attacher":"other.csi"}}`)},
		"NodeFence whose override and metadata stay":            {registration.NodeFencesPath, unchanged(reviews.NodeFence, `{"metadata":{"name":"x"}}`)},
		"override of a NodeFence that stays":                    {registration.NodeFenceOverridesPath, unchanged(reviews.NodeFence, `{"metadata":{"name":"x"}}`)},
		"deletion of a NodeFence that holds and fences nothing": {registration.NodeFencesPath, reviews.Of(reviews.NodeFence, `"name":"x","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"x"}}`)},
	}
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, unreadable(fakeClient(t))).ask(t, test.path, test.review)
			must.Check(t, response.Allowed && response.Patch == nil && response.Warnings == nil, "got %+v", response)
		})
	}
	covered := []string{
		shareManagersPath,                // tested beside the rule; it reads the Service first
		deletionsPath,                    // the account decides, and review asks for no deletions
		registration.AttachmentMarksPath, // a mark does no harm
	}
	for _, row := range rows {
		covered = append(covered, row.path)
	}
	for _, path := range conditionalPaths() {
		must.Check(t, slices.Contains(covered, path), "%s has match conditions, and no row above", path)
	}
}

// conditionalPaths are the paths of the entries with match conditions.
func conditionalPaths() []string {
	var paths []string
	for _, e := range allEntries() {
		if len(e.Conditions) > 0 {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// allEntries of the webhook configurations.
func allEntries() []registration.Entry {
	return Entries(Installed(), PartLonghorn, PartFencing, PartNFS)
}

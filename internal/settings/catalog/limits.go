package catalog

// The settings that limit concurrent work on a node; 0 turns the work off.
// No component is built with these settings. Source: longhorn-manager types/setting.go.
const (
	ReplicaRebuildLimit Name = "concurrent-replica-rebuild-per-node-limit"
	BackingImageLimit   Name = "concurrent-backing-image-replenish-per-node-limit"
)

func limitFamily() []Definition {
	normalize, form := wholeNumber(0, unbounded), wholeNumberForm(0, unbounded)
	return []Definition{
		{
			Name: ReplicaRebuildLimit, Default: "5", Normalize: normalize, Form: form, Since: "1.2", DangerZone: true, Gate: AtOnce,
			Affects: "no pod: rebuilds of replicas, from the next one on",
		},
		{
			Name: BackingImageLimit, Default: "5", Normalize: normalize, Form: form, Since: "1.7", DangerZone: true, Gate: AtOnce,
			Affects: "no pod: copies of backing images, from the next one on",
		},
	}
}

package catalog

// The settings that turn a data engine on. Longhorn refuses to turn an engine off
// while volumes of the engine are attached. Source: longhorn-manager datastore/longhorn.go,
// ValidateV1DataEngineEnabled and ValidateV2DataEngineEnabled.
const (
	V1DataEngine Name = "v1-data-engine"
	V2DataEngine Name = "v2-data-engine"
)

func engineFamily() []Definition {
	return []Definition{
		{
			Name: V1DataEngine, Default: "true", Normalize: normalizeBool, Form: boolForm, Since: "1.6", DangerZone: true, Gate: InstanceManagerIdle,
			Trait: DataEngine, Wants: wants(instanceManagerOf(EngineV1), normalizeBool),
			Affects: "instance-manager pods of the v1 data engine: removed when the engine is off",
		},
		{
			Name: V2DataEngine, Default: "false", Normalize: normalizeBool, Form: boolForm, Since: "1.5", DangerZone: true, Gate: InstanceManagerIdle,
			Trait: DataEngine, Wants: wantsV2,
			Affects: "instance-manager pods of the v2 data engine: removed when the engine is off",
		},
	}
}

// wantsV2 is "false" on nodes with the v2 data engine disabled: Longhorn removes the instance manager there.
func wantsV2(value string, c Component, nodes Nodes) (string, bool) {
	want, ok := wants(instanceManagerOf(EngineV2), normalizeBool)(value, c, nodes)
	if ok && nodes[c.Node].DisabledV2 {
		want = "false"
	}
	return want, ok
}

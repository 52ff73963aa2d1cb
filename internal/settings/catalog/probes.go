package catalog

// The settings of liveness probes, in seconds except the threshold. Source:
// longhorn-manager types/setting.go, controller/engine_image_controller.go.
const (
	InstanceManagerProbeTimeout Name = "instance-manager-pod-liveness-probe-timeout"
	EngineImageProbePeriod      Name = "engine-image-pod-liveness-probe-period"
	EngineImageProbeTimeout     Name = "engine-image-pod-liveness-probe-timeout"
	EngineImageProbeFailures    Name = "engine-image-pod-liveness-probe-failure-threshold"
)

func probeFamily() []Definition {
	normalize, form := wholeNumber(1, 60), wholeNumberForm(1, 60)
	ofEngineImages := func(name Name, text string, trait Trait) Definition {
		return Definition{
			Name: name, Default: text, Normalize: normalize, Form: form, Since: "1.12", ByFairlead: true, DangerZone: true, Gate: AtOnce,
			Trait: trait, Wants: wants(engineImage, normalize), Affects: "engine-image DaemonSets",
		}
	}
	return []Definition{
		{
			Name: InstanceManagerProbeTimeout, Default: "10", Normalize: normalize, Form: form, Since: "1.10", DangerZone: true, Gate: InstanceManagerIdle,
			Trait: LivenessTimeout, Wants: wants(instanceManager, normalize), Affects: "instance-manager pods",
		},
		ofEngineImages(EngineImageProbePeriod, "5", ProbePeriod),
		ofEngineImages(EngineImageProbeTimeout, "4", ProbeTimeout),
		ofEngineImages(EngineImageProbeFailures, "3", ProbeFailures),
	}
}

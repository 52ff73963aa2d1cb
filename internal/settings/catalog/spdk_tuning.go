package catalog

// The settings with which Longhorn 1.12.1 and later tunes the SPDK daemon of the v2
// data engine. Source: longhorn-manager types/setting.go, createInstanceManagerPodSpec
// and GetInstanceManagerCPURequirement after pull requests 4931, 4932 and 5071.
const (
	// DataEngineCPUCores is the number of CPU cores that the kubelet pins for the daemon.
	// 0 leaves DataEngineCPUMask in effect.
	DataEngineCPUCores     Name = "data-engine-number-of-cpu-cores"
	DataEngineCPUIsolation Name = "data-engine-cpu-isolation-enabled"
	DataEngineLargePool    Name = "data-engine-iobuf-large-pool-size" // buffers of 132 KiB
	DataEngineSmallPool    Name = "data-engine-iobuf-small-pool-size" // buffers of 8 KiB
)

// DefaultLargePool and DefaultSmallPool are SPDK's defaults, and Longhorn's minimum.
// Buffers are part of data-engine-memory-size: the pod requests no more huge pages.
const (
	DefaultLargePool = 1024
	DefaultSmallPool = 8192
)

// Traits of the SPDK daemon of Longhorn 1.12.1 and later.
const (
	CPUCores     Trait = "cpuCores"       // a number: 2; 0 with a mask
	CPUIsolation Trait = "cpuIsolation"   // true or false
	LargePool    Trait = "iobufLargePool" // a number of buffers: 1024
	SmallPool    Trait = "iobufSmallPool" // a number of buffers: 8192
)

func spdkTuningFamily() []Definition {
	family := []Definition{
		spdk(DataEngineCPUCores, `{"v2":"0"}`, v2Numbers(0, "2"), CPUCores),
		spdk(DataEngineCPUIsolation, `{"v2":"false"}`, v2Only(normalizeBool, boolForm, "true"), CPUIsolation),
		spdk(DataEngineLargePool, `{"v2":"1024"}`, v2Numbers(DefaultLargePool, "4096"), LargePool),
		spdk(DataEngineSmallPool, `{"v2":"8192"}`, v2Numbers(DefaultSmallPool, "16384"), SmallPool),
	}
	for i := range family {
		family[i].Since = "1.12.1"
	}
	return family
}

// v2Numbers is the grammar of whole numbers from least.
func v2Numbers(least int64, example string) perEngine {
	return v2Only(wholeNumber(least, unbounded), wholeNumberForm(least, unbounded), example)
}

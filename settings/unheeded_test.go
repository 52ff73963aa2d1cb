package settings

import (
	"slices"
	"strings"
	"testing"
)

// setBoth sets Fairlead's own value and what the storage system says of it.
func (f *Facts) setBoth(name Name, own, system string) {
	f.setOwn(name, own)
	if f.SystemValues == nil {
		f.SystemValues = map[Name]string{}
	}
	f.SystemValues[name] = system
}

// setOwn sets Fairlead's own value, and the storage system has no such setting.
func (f *Facts) setOwn(name Name, value string) { f.Values[name] = Value{value, SourceFairlead} }

// setHere sets the storage system's own value, and nobody says otherwise.
func (f *Facts) setHere(name Name, value string) {
	f.setBoth(name, value, value)
	f.Values[name] = Value{value, "longhorn"}
}

// A value that pods do not come back with restarted them again and again: after
// ten seconds, a minute, ten minutes, and then every hour without end.
func TestRegressionWhatNobodyBuildsRestartsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		but     func(*Facts)
		setting Name
		message string // of the status; "" where it is none of this
		plan    []string
	}{
		"longhorn says otherwise": {
			but: func(f *Facts) { f.setBoth(GuaranteedCPU, "20", "12") }, setting: GuaranteedCPU,
			message: `longhorn has guaranteed-instance-manager-cpu itself, with "12", and goes by that: set it in settings.longhorn.io`,
		},
		"templates are left alone too, which longhorn would write back": {
			but: func(f *Facts) { f.setBoth(PriorityClass, critical, "") }, setting: PriorityClass,
			message: `longhorn has priority-class itself, with "", and goes by that: set it in settings.longhorn.io`,
		},
		"an engine is not removed that longhorn makes anew": {
			but: func(f *Facts) { f.setBoth(V1DataEngine, "false", "true") }, setting: V1DataEngine,
			message: `longhorn has v1-data-engine itself, with "true", and goes by that: set it in settings.longhorn.io`,
		},
		"nor is it gone for good when its last pod is": {
			but: func(f *Facts) {
				f.setBoth(V1DataEngine, "false", "true")
				for i := range f.Components[:3] {
					f.Components[i].Built, f.Components[i].Ready, f.Components[i].Missing = nil, false, true
				}
			}, setting: V1DataEngine,
			message: `longhorn has v1-data-engine itself, with "true", and goes by that: set it in settings.longhorn.io`,
		},
		"an engine that is on for Fairlead alone never starts": {
			but: func(f *Facts) { f.setBoth(V2DataEngine, "true", "false") }, setting: V2DataEngine,
			message: `longhorn has v2-data-engine itself, with "false", and goes by that: set it in settings.longhorn.io`,
		},
		"only longhorn builds probes, and has no such setting": {
			but: func(f *Facts) { f.setOwn(InstanceManagerProbeTimeout, "20") }, setting: InstanceManagerProbeTimeout,
			message: "longhorn has no setting instance-manager-pod-liveness-probe-timeout, and nobody else goes by it: upgrade longhorn to a version that has it (1.10 or later), and set it in settings.longhorn.io",
		},
		"of before 1.10": {
			but: func(f *Facts) { f.addV2(); f.setOwn(V2CPUMask, "0x7") }, setting: V2CPUMask,
			message: "longhorn has no setting v2-data-engine-cpu-mask, and nobody else goes by it: it takes a version that has it (from 1.8, before 1.10), and the value in settings.longhorn.io",
		},
		"though no pod is there yet to be built with it": {
			but: func(f *Facts) { f.setOwn(LogPath, "/var/log/longhorn") }, setting: LogPath,
			message: "longhorn has no setting log-path, and nobody else goes by it: upgrade longhorn to a version that has it (1.10 or later), and set it in settings.longhorn.io",
		},
		"nothing is built with it, and longhorn reads its own": {
			but: func(f *Facts) { f.setBoth(DisableSnapshotPurge, "true", "false") }, setting: DisableSnapshotPurge,
			message: `longhorn has disable-snapshot-purge itself, with "false", and goes by that: set it in settings.longhorn.io`,
		},
		"a limit of nobody": {
			but: func(f *Facts) { f.setOwn(ReplicaRebuildLimit, "7") }, setting: ReplicaRebuildLimit,
			message: "longhorn has no setting concurrent-replica-rebuild-per-node-limit, and nobody else goes by it: upgrade longhorn to a version that has it (1.2 or later), and set it in settings.longhorn.io",
		},

		"longhorn says the same, in other words": {
			but: func(f *Facts) { f.setBoth(V1DataEngine, "false", "False") }, setting: V1DataEngine,
			plan: []string{"Remove im-1 for v1-data-engine", "Remove im-2 for v1-data-engine", "Remove im-3 for v1-data-engine"},
		},
		"longhorn has its own and Fairlead has none": {
			but: func(f *Facts) { f.setHere(InstanceManagerProbeTimeout, "20") }, setting: InstanceManagerProbeTimeout,
			plan: []string{
				"Restart im-1 for instance-manager-pod-liveness-probe-timeout", "Restart im-2 for instance-manager-pod-liveness-probe-timeout",
				"Restart im-3 for instance-manager-pod-liveness-probe-timeout",
			},
		},
		"longhorn lacks it, and Fairlead's webhook builds with it": {
			but: func(f *Facts) { f.setOwn(GuaranteedCPU, "20") }, setting: GuaranteedCPU,
			plan: []string{"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu"},
		},
		"longhorn lacks it, and Fairlead writes the template": {
			but: func(f *Facts) { f.setOwn(EngineImageProbePeriod, "30") }, setting: EngineImageProbePeriod,
			plan: []string{"Update engine-image-ei-1 for engine-image-pod-liveness-probe-period"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			test.but(&f)
			p := Make(f)
			if now, _ := p.For(test.setting); !slices.EqualFunc(now, test.plan, func(w Work, text string) bool { return textOfWork(w) == text }) {
				t.Errorf("does now\n%s", strings.Join(textOf(p), "\n"))
			}
			if _, later := p.For(test.setting); len(later) > 0 {
				t.Errorf("does later\n%s", strings.Join(textOf(p), "\n"))
			}
			s, _ := p.Of(test.setting)
			waits := len(s.Blockers) > 0 && s.Blockers[0].Kind == BlockedByOther && s.Blockers[0].Name == string(test.setting) && s.Phase == PhaseWaiting
			if said := strings.HasPrefix(s.Message, test.message) && test.message != ""; said != (test.message != "") || said && !waits || s.Applied {
				t.Errorf("%s %t: %s, blockers %+v", s.Phase, s.Applied, s.Message, s.Blockers)
			}
		})
	}
}

// Longhorn of before 1.10 builds its probes with 4 s, and has no setting for it. To ask
// for the catalog's 10 s there restarted each idle instance manager once an hour, for ever.
func TestRegressionAValueThatNobodyHeededIsTakenBackForGood(t *testing.T) {
	for name, test := range map[string]struct {
		setting Name
		trait   Trait
		built   string
	}{
		"probes": {InstanceManagerProbeTimeout, LivenessTimeout, "4"},
		"logs":   {LogPath, LogPathTrait, "/var/log"},
		"memory": {DataEngineMemorySize, MemorySize, "1024"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.addV2()
			for i := range f.Components {
				if _, exists := f.Components[i].Built[test.trait]; exists {
					f.Components[i].Built[test.trait] = test.built
				}
			}
			f.Applied[test.setting] = Underway // as it was told of the value that was taken back
			p := Make(f)
			if got := textOf(p); len(got) > 0 {
				t.Errorf("plan\n%s", strings.Join(got, "\n"))
			}
			if got := statusOf(p, test.setting); got != "Applied true: no resource sets it: components stay as they were installed" {
				t.Errorf("got %s", got)
			}
			if _, text := Announce(p, test.setting); text != "" {
				t.Errorf("it is announced: %s", text)
			}
		})
	}
}

// What nobody builds holds nothing else up, and is put off to no other's restart.
func TestWhatNobodyBuildsHoldsNothingElseUp(t *testing.T) {
	f := fleet()
	f.setBoth(GuaranteedCPU, "20", "12")
	f.setOwn(InstanceManagerProbeTimeout, "20")
	f.setHere(PriorityClass, critical)
	f.Components = f.Components[:1]
	if got := textOf(Make(f)); !slices.Equal(got, []string{"Restart im-1 for priority-class"}) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	f.apply(t)
	if s, _ := Make(f).Of(PriorityClass); !s.Applied {
		t.Errorf("got %s", s.Message)
	}
}

// The network for RWX volumes, and which workloads are restarted, are read by
// Fairlead itself: its own value is heeded, whatever longhorn says.
func TestWhatFairleadReadsItselfIsHeeded(t *testing.T) {
	values := Values{
		StorageNetworkForRWX: {"true", SourceFairlead}, EndpointNetworkForRWX: {"kube-system/one", SourceFairlead},
		AutoDeletePod: {"false", SourceFairlead}, AutoDeletePodBlacklist: {"", SourceFairlead},
	}
	for name := range values {
		for what, system := range map[string]map[Name]string{"lacks it": nil, "says otherwise": {name: "false"}} {
			if why := Unheeded(values, system, name, "longhorn"); why != "" {
				t.Errorf("%s, longhorn %s: %s", name, what, why)
			}
		}
	}
}

// A setting that the storage system does not know decided the trait for the one
// that it builds with: that was called applied, and never rolled out.
func TestRegressionWhatTheStorageSystemLacksOverrulesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		but    func(*Facts)
		status map[Name]string
		plan   []string
	}{
		"the older one is longhorn's": {
			but: func(f *Facts) {
				f.setOwn(DataEngineCPUMask, `{"v2":"0x7"}`)
				f.setHere(V2CPUMask, "0xf")
			},
			status: map[Name]string{
				V2CPUMask:         "Restarting false: 0 of 1 instance manager",
				DataEngineCPUMask: "Waiting false: longhorn has no setting data-engine-cpu-mask, and nobody else goes by it: upgrade longhorn to a version that has it (1.10 or later), and set it in settings.longhorn.io",
			},
			plan: []string{"Restart v2-im-3 for v2-data-engine-cpu-mask"},
		},
		"and of memory": {
			but: func(f *Facts) {
				f.setOwn(DataEngineMemorySize, "8192")
				f.setHere(V2HugepageLimit, "4096")
			},
			status: map[Name]string{V2HugepageLimit: "Restarting false: 0 of 1 instance manager"},
			plan:   []string{"Restart v2-im-3 for v2-data-engine-hugepage-limit"},
		},
		"the older one is said of both in the same words": {
			but: func(f *Facts) {
				f.setOwn(DataEngineCPUMask, `{"v2":"0x7"}`)
				f.setBoth(V2CPUMask, "0xf", "0xF")
			},
			status: map[Name]string{V2CPUMask: "Restarting false: 0 of 1 instance manager"},
			plan:   []string{"Restart v2-im-3 for v2-data-engine-cpu-mask"},
		},
		"longhorn has the older one, otherwise": {
			but: func(f *Facts) {
				f.setOwn(DataEngineCPUMask, `{"v2":"0x7"}`)
				f.setBoth(V2CPUMask, "0xf", "0x1")
			},
			status: map[Name]string{
				V2CPUMask:         `Waiting false: longhorn has v2-data-engine-cpu-mask itself, with "0x1", and goes by that: set it in settings.longhorn.io`,
				DataEngineCPUMask: "Waiting false: longhorn has no setting data-engine-cpu-mask, and nobody else goes by it: upgrade longhorn to a version that has it (1.10 or later), and set it in settings.longhorn.io",
			},
		},
		// Longhorn of 1.10 and later holds pods of both engines against the newer one, and
		// deletes what was built otherwise.
		"longhorn has the newer one alone": {
			but: func(f *Facts) {
				f.setOwn(V2GuaranteedCPU, "2000")
				f.setHere(GuaranteedCPU, "20")
			},
			status: map[Name]string{
				GuaranteedCPU:   "Restarting false: 0 of 1 instance manager",
				V2GuaranteedCPU: "Waiting false: longhorn has no setting v2-data-engine-guaranteed-instance-manager-cpu, and goes by guaranteed-instance-manager-cpu: set that in settings.longhorn.io",
			},
			plan: []string{"Restart v2-im-3 for guaranteed-instance-manager-cpu"},
		},
		"and of CPUs": {
			but: func(f *Facts) {
				f.setOwn(V2CPUMask, "0xf")
				f.setHere(DataEngineCPUMask, `{"v2":"0x7"}`)
			},
			status: map[Name]string{
				DataEngineCPUMask: "Restarting false: 0 of 1 instance manager",
				V2CPUMask:         "Waiting false: longhorn has no setting v2-data-engine-cpu-mask, and goes by data-engine-cpu-mask: set that in settings.longhorn.io",
			},
			plan: []string{"Restart v2-im-3 for data-engine-cpu-mask"},
		},
		"and the older one is taken back": {
			but: func(f *Facts) {
				f.Applied[V2GuaranteedCPU] = Underway
				f.setHere(GuaranteedCPU, "lots")
			},
			status: map[Name]string{V2GuaranteedCPU: "Applied true: no resource sets it: components stay as they were installed"},
		},
		"longhorn has neither": {
			but: func(f *Facts) {
				f.setOwn(DataEngineCPUMask, `{"v2":"0x7"}`)
				f.setOwn(V2CPUMask, "0xf")
			},
			status: map[Name]string{V2CPUMask: "Applied true: of no effect: data-engine-cpu-mask decides"},
		},
		"one that was taken back asks for nothing": {
			but: func(f *Facts) {
				f.setOwn(DataEngineCPUMask, `{"v2":"0x7"}`)
				f.Applied[V2CPUMask] = "0xf"
			},
			status: map[Name]string{V2CPUMask: "Applied true: no resource sets it: components stay as they were installed"},
		},
		// Longhorn builds with its own value of the first: the second is about the other engine.
		"what longhorn has itself, and otherwise, decides all the same": {
			but: func(f *Facts) {
				f.setBoth(V2GuaranteedCPU, "2000", "1250")
				f.setHere(GuaranteedCPU, "12")
			},
			status: map[Name]string{GuaranteedCPU: "Applied true: of no effect: v2-data-engine-guaranteed-instance-manager-cpu decides"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.addV2()
			f.Components = f.Components[len(f.Components)-1:]
			test.but(&f)
			p := Make(f)
			if got := textOf(p); !slices.Equal(got, test.plan) {
				t.Errorf("plan\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.plan, "\n"))
			}
			for _, w := range p.Now { // or what is done would not be known when it is undone
				for trait, want := range w.Wants {
					if got := Wanted(f.Values, f.SystemValues, f.Applied, w.Component, f.Nodes)[trait]; got != want {
						t.Errorf("%s is wanted by %v, not %v", trait, got, want)
					}
				}
			}
			for name, want := range test.status {
				if got := statusOf(p, name); got != want {
					t.Errorf("%s: %s\nwant %s", name, got, want)
				}
			}
		})
	}
}

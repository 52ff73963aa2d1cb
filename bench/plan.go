package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// planSize is how large a cluster is that a plan is made for.
type planSize struct{ volumes, components, nodes int }

func (s planSize) String() string {
	return fmt.Sprintf("plan: %d volumes, %d components, %d nodes, CPU", s.volumes, s.components, s.nodes)
}

var (
	largePlan = planSize{volumes: 1000, components: 5000, nodes: 200}
	smallPlan = planSize{volumes: 100, components: 500, nodes: 20}
)

// mostGrowth is what a plan may take of ten times the cluster: linear growth is
// 10, sorting by node and name adds a little, and caches hold less of the large one.
const mostGrowth = 15

// planRows measure one plan for a large cluster, and how that has grown from a
// tenth of it. There is nothing of controller-runtime to set beside it.
func planRows(rounds int) ([]row, error) {
	large, err := planning(largePlan)
	if err != nil {
		return nil, err
	}
	small, err := planning(smallPlan)
	if err != nil {
		return nil, err
	}
	costs, err := interleave(rounds, large, small)
	if err != nil {
		return nil, err
	}
	growth := costs[0].over(costs[1])
	return []row{
		{what: largePlan.String(), ours: micro(costs[0]), theirs: "-", ratio: growth.String(), target: fmt.Sprintf("at most %d × a tenth of it", mostGrowth), met: met(growth.median <= mostGrowth)},
		{what: smallPlan.String(), ours: micro(costs[1]), theirs: "-", ratio: "-", target: "-", met: "-"},
	}, nil
}

var errIdle = errors.New("the plan has not the work that is to be measured")

// planning makes plans for a cluster of this size, checked to be real work.
func planning(size planSize) (sampler, error) {
	facts := size.facts()
	p := settings.Make(facts)
	if len(p.Now) == 0 || len(p.Later) == 0 || len(p.Now)+len(p.Later) < len(facts.Components) {
		return nil, fmt.Errorf("%w: %d now, %d later of %d components", errIdle, len(p.Now), len(p.Later), len(facts.Components))
	}
	return func() (time.Duration, error) {
		runtime.GC()
		started, err := cpuTime()
		if err != nil {
			return 0, err
		}
		for plans := 1; ; plans++ {
			settings.Make(facts)
			now, err := cpuTime()
			if err != nil {
				return 0, err
			}
			if spent := now - started; spent >= sampleTime {
				return spent / time.Duration(plans), nil
			}
		}
	}, nil
}

// facts of a cluster in which everything is outdated: the priority class that
// all is to be built with waits for volumes, other settings for what runs in a pod.
func (s planSize) facts() settings.Facts {
	own := map[settings.Name]string{
		settings.PriorityClass: "longhorn-critical", settings.TaintToleration: "dedicated=storage:NoSchedule",
		settings.StorageNetwork: "kube-system/storage-net", settings.GuaranteedCPU: "20",
	}
	f := settings.Facts{
		Profile: storage.Longhorn(), Values: settings.Resolve(own, nil, "longhorn"),
		Applied: map[settings.Name]string{}, Nodes: settings.Nodes{}, Now: time.Unix(0, 0),
	}
	for i := range s.nodes {
		f.Nodes[s.node(i)] = settings.Node{Ready: true, Storage: true, AllocatableMilliCPU: 16_000}
	}
	for i := range s.volumes {
		f.Volumes = append(f.Volumes, storage.Volume{
			Name: fmt.Sprintf("pvc-%05d", i), Attached: i%2 == 0, Engine: settings.EngineV1,
			Nodes: []string{s.node(i)}, Workloads: []string{fmt.Sprintf("default/web-%d", i)},
		})
	}
	for i := range s.components {
		f.Components = append(f.Components, s.component(i))
	}
	return f
}

func (s planSize) node(i int) string { return fmt.Sprintf("node-%03d", i%s.nodes) }

// component is one of every kind that pods are made of, instance managers idle or in use.
func (s planSize) component(i int) settings.Component {
	c := settings.Component{
		Name: fmt.Sprintf("component-%05d", i), UID: fmt.Sprint(i), Node: s.node(i), Engine: settings.EngineV1, Ready: true,
		Built: map[settings.Trait]string{
			settings.PriorityClassName: "", settings.Tolerations: "", settings.NodeSelector: "",
			settings.StorageAttachment: "", settings.CPURequest: "480m", settings.DataEngine: "true",
		},
	}
	switch i % 5 {
	case 0:
		c.Kind = settings.ShareManager
	case 1:
		c.Kind = settings.BackingImageManager
	default:
		c.Kind = settings.InstanceManager
	}
	if i%4 != 0 {
		c.Uses = []string{fmt.Sprintf("pvc-%05d-e-0", i), fmt.Sprintf("pvc-%05d-r-0", i)}
	}
	return c
}

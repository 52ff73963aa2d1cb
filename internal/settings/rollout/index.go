package rollout

import "github.com/fairlead-io/fairlead/internal/storage"

// rolloutIndex maps volume names to objects, so that the cost of a decision is linear in volumes.
type rolloutIndex struct {
	volumes  map[string]*storage.Volume // the first of a name
	attached map[string]*storage.Volume
	services map[string][]*storage.Service
	served   map[string]bool
}

// indexed adds an index for one decision. The index does not follow changes of the facts.
func (r Rollout) indexed() Rollout {
	x := &rolloutIndex{
		volumes: make(map[string]*storage.Volume, len(r.Volumes)), attached: make(map[string]*storage.Volume, len(r.Volumes)),
		services: make(map[string][]*storage.Service, len(r.Services)), served: make(map[string]bool, len(r.Servers)),
	}
	for i := range r.Volumes {
		v := &r.Volumes[i]
		if _, there := x.volumes[v.Name]; !there {
			x.volumes[v.Name] = v
		}
		if _, there := x.attached[v.Name]; !there && v.Attached {
			x.attached[v.Name] = v
		}
	}
	for i := range r.Services {
		s := &r.Services[i]
		x.services[s.Volume] = append(x.services[s.Volume], s)
	}
	for _, s := range r.Servers {
		x.served[s.Volume] = true
	}
	r.index = x
	return r
}

// lookup returns the index of the decision, or a temporary one.
func (r Rollout) lookup() *rolloutIndex {
	if r.index == nil {
		r = r.indexed()
	}
	return r.index
}

// workloadsOf returns the pods that use an attached volume.
func (x *rolloutIndex) workloadsOf(volume string) []string {
	if v, attached := x.attached[volume]; attached {
		return v.Workloads
	}
	return nil
}

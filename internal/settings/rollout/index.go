package rollout

import "github.com/fairlead-io/fairlead/internal/storage"

// rolloutIndex finds what belongs to a volume by the volume's name. Without it a
// plan would go through all volumes for every Service, so that its cost grew with their square.
type rolloutIndex struct {
	volumes  map[string]*storage.Volume // of two of one name the first
	attached map[string]*storage.Volume
	services map[string][]*storage.Service
	served   map[string]bool
}

// indexed are the same facts with an index, for one decision: it does not follow
// when facts change.
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

// lookup is the index of one decision, or one made for this question.
func (r Rollout) lookup() *rolloutIndex {
	if r.index == nil {
		r = r.indexed()
	}
	return r.index
}

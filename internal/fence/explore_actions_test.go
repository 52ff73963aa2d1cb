package fence

import (
	"slices"
	"time"
)

// action is one thing that one party does.
type action struct {
	name string
	do   func(*small)
}

// actions that are possible in a state.
func (s *small) actions() (list []action) {
	add := func(name string, do func(*small)) { list = append(list, action{name, do}) }
	for i := range s.machines {
		m, n, name := s.machines[i], s.nodes[i], nodeName(i)
		fails := i == 0 || s.world.both
		if m.on && m.reaches {
			add(name+": its kubelet reports", func(s *small) { s.heartbeat(i) })
			if s.left.slowboots > 0 && !n.exists {
				add(name+": its kubelet registers, not Ready yet", func(s *small) {
					s.left.slowboots--
					s.heartbeat(i)
					s.nodes[i].ready, s.nodes[i].inUse = false, false
				})
			}
			if fails && s.left.freezes > 0 {
				add(name+" is cut off", func(s *small) { s.machines[i].reaches = false; s.left.freezes-- })
			}
			if fails && s.left.restarts > 0 {
				add(name+": its kubelet starts again", func(s *small) { s.startKubelet(i); s.left.restarts-- })
			}
			if m.mount != notMounted || m.waits {
				add(name+": the pod ends", func(s *small) {
					c := &s.machines[i]
					c.mount, c.waits, c.noticed = notMounted, false, false
				})
			}
			if m.mount == notMounted && !m.waits && s.left.waits > 0 {
				add(name+": a pod waits for the volume", func(s *small) { s.machines[i].waits = true; s.left.waits-- })
			}
			if n.attached > 0 && m.mount != isMounted && s.sameBoot(i) && !s.isBlocked(i) && s.volume {
				add(name+": its kubelet mounts the volume", func(s *small) { s.mountVolume(i) })
			}
		}
		if m.on && !m.reaches {
			add(name+" is reached again", func(s *small) { s.reach(i) })
		}
		if fails && m.on && s.left.powers > 0 {
			add(name+" loses power", func(s *small) { s.stop(i); s.left.powers-- })
		}
		if m.boot+1 < boots && !m.on {
			add(name+" boots", func(s *small) { s.boot(i) })
		}
		if n.ready && (!m.on || !m.reaches || n.boot != m.boot) {
			add("the node controller finds "+name+" silent", func(s *small) { s.nodeController(i) })
		}
		switch attachable := s.attachable(i); {
		case attachable && s.world.system.gate(s, i):
			add("Kubernetes attaches the volume to "+name, func(s *small) { s.attach(i) })
		case attachable && s.calm() && !s.nodes[1-i].inUse: // a kubelet that lists a volume may have it mounted, or wait for it
			add("Kubernetes may not attach the volume to "+name, func(s *small) {
				s.fail("healthy cluster slowed: the volume is held, and both nodes were Ready throughout")
			})
		}
		if n.attached > 0 && (s.forced(i) || !n.inUse && m.mount != isMounted && !m.waits) {
			add("Kubernetes detaches the volume from "+name, func(s *small) {
				if m := &s.machines[i]; !n.exists && m.on { // neither Node nor attachment shows it from here on
					m.noticed = m.noticed && s.world.system.records(s, i)
				}
				s.nodes[i].attached, s.nodes[i].torn = 0, false
			})
		}
		if fails && n.exists && n.attached > 0 && !n.torn && s.left.tears > 0 {
			add("a user deletes the VolumeAttachment of "+name+" by force", func(s *small) {
				s.nodes[i].torn = true
				s.machines[i].noticed = s.machines[i].noticed && s.world.system.records(s, i) // else Fairlead has not looked since it was attached
				s.left.tears--
			})
		}
		if n.torn {
			add("Kubernetes finds that "+name+" has no VolumeAttachment", func(s *small) { s.nodes[i].attached, s.nodes[i].torn = 0, false })
		}
		if fails && n.exists && s.left.deletions > 0 {
			add("a user deletes Node "+name, func(s *small) { s.deleteNode(i); s.left.deletions-- })
		}
		if !n.exists && s.fairlead.last[i].Boot.BootID != "" && s.left.gaps > 0 {
			add("Fairlead starts again, and does not know in which boot "+name+" was deleted", func(s *small) {
				s.fairlead.last[i], s.fairlead.started = Deletion{}, s.clock()
				s.left.gaps--
			})
		}
		if n.exists && !n.taint && !n.ready && s.left.taints > 0 {
			add("a user taints "+name+" as out of service", func(s *small) { s.nodes[i].taint = true; s.left.taints-- })
		}
		if n.taint && s.world.system.mayUntaint(s, i) {
			add("a user takes the taint off "+name, func(s *small) { s.nodes[i].taint = false })
		}
		if s.left.crashes > 0 {
			add("Fairlead looks at "+name+", and crashes after its first write", func(s *small) {
				saw := *s
				s.world.system.look(s, &saw, i, 1)
				s.left.crashes--
			})
		}
		add("Fairlead looks at "+name, func(s *small) { saw := *s; s.world.system.look(s, &saw, i, 9) })
	}
	if s.left.volumes > 0 || !s.volume {
		if s.volume {
			add("a user deletes the PersistentVolume", func(s *small) { s.volume = false; s.left.volumes-- })
		} else {
			add("a user recreates the PersistentVolume", func(s *small) { s.volume = true })
		}
	}
	for at, f := range s.fences {
		if f.due || f.Deleting {
			add("csi-addons carries out "+f.Name, func(s *small) { s.csiAddons(at) })
			if s.left.failures > 0 && !f.Deleting {
				add("csi-addons times out for "+f.Name, func(s *small) { s.csiAddonsTimesOut(at); s.left.failures-- })
				add("csi-addons carries out "+f.Name+", and has yet to say so", func(s *small) { s.csiAddonsSilently(at); s.left.failures-- })
			}
		}
	}
	if len(s.late) > 0 {
		add("the storage runs a late command", func(s *small) { s.runLate() })
	}
	if s.left.replays > 0 && len(s.fences) > 0 {
		add("csi-addons starts again", func(s *small) {
			s.fences = slices.Clone(s.fences)
			for at := range s.fences {
				s.fences[at].due = true
			}
			s.left.replays--
		})
	}
	if s.left.secs > 0 {
		add("ten seconds pass", func(s *small) { s.now = s.now.Add(10 * time.Second); s.left.secs-- })
	}
	if s.left.times > 0 {
		add("ten minutes pass", func(s *small) { s.passTime(); s.left.times-- })
	}
	list = append(list, s.world.system.actions(s)...)
	return list
}

// calm: nothing has gone wrong so far.
func (s *small) calm() bool {
	if s.world.begins != nil {
		return false
	}
	was, is := s.world.left, s.left
	was.waits, is.waits = 0, 0
	return was == is
}

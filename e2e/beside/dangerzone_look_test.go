package beside

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

func (z *zone) follow(settings []string) map[string][]invariants.Progress {
	z.Helper()
	writes, err := z.ReadWrites()
	z.must(err)
	var names []string
	for _, name := range settings {
		names = append(names, z.settingName(name))
	}
	return z.replay.Follow(writes, names...)
}

// appliedZone is nil once settings have their values, and are applied: Longhorn's say so, and Fairlead's where it is installed.
func (z *zone) appliedZone(settings []string, to int) error {
	for _, name := range settings {
		applied, err := z.Applied(z.ctx, name)
		if err != nil || !applied {
			return errors.Join(err, fmt.Errorf("%s is not applied", name))
		}
		if !one.installed {
			continue
		}
		var own v1alpha1.Setting
		if err := z.Client.Get(z.ctx, key(z.settingName(name)), &own); err != nil {
			return err
		}
		want := z.Version.Zone[name][to]
		if name == StorageNetworkForRWX && !z.Version.HasSwitch() { // the value is a network
			if want, err = z.Text(z.ctx, "Setting", z.settingName(name), "value"); err != nil {
				return err
			}
		}
		if own.Status.EffectiveValue != want || !own.Status.Applied {
			return fmt.Errorf("fairlead's setting %s is at %q, applied: %v: %v", name, own.Status.EffectiveValue, own.Status.Applied, own.Status.Blockers)
		}
	}
	return nil
}

// zoneQuiet is longer than what follows a change takes to begin: Longhorn retries within 50 ms, Fairlead looks again within 2 s.
const zoneQuiet = 3 * time.Second

// waitQuiet waits until nothing was changed for a while of what settings are about.
func (z *zone) waitQuiet(from Mark) {
	z.Helper()
	since, seen := time.Now(), 0
	z.must(eventually.Until(z.ctx, "all to be quiet", settleTimeout, func() error {
		writes := z.since(from, func(w sandbox.Write) bool {
			resource, _, _ := strings.Cut(w.Resource, "/")
			return w.Changed && w.Namespace == Namespace && slices.Contains([]string{"pods", "daemonsets", "deployments", "settings"}, resource)
		})
		if len(writes) > seen {
			since, seen = time.Now(), len(writes)
		}
		if quiet := time.Since(since); quiet < zoneQuiet {
			return fmt.Errorf("quiet for %s", quiet)
		}
		return nil
	}))
}

// inUse are the pods that attached volumes need on their node, by name.
func (z *zone) inUse(attached []string) map[string]*corev1.Pod {
	z.Helper()
	pods := map[string]*corev1.Pod{}
	if len(attached) == 0 {
		return pods
	}
	managers, err := z.Pods(z.ctx, "longhorn.io/component", "instance-manager")
	z.must(err)
	for _, pod := range managers {
		if pod.Labels["longhorn.io/data-engine"] == "v1" {
			pods[pod.Name] = &pod
		}
	}
	if slices.Contains(attached, "rwx") {
		server, err := z.Server(z.ctx, zoneVolume("rwx"))
		z.must(err)
		plugin, err := z.PluginPod(z.ctx, z.Manager.pod.Spec.NodeName)
		z.must(err)
		pods[server.Name], pods[plugin.Name] = server, plugin
	}
	return pods
}

// judgeInUse wants that pods in use are those of before, and says which were restarted.
func (z *zone) judgeInUse(used map[string]*corev1.Pod, start Mark) []string {
	z.Helper()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		var now corev1.Pod
		if err := z.Client.Get(z.ctx, key(name), &now); err == nil && now.UID == used[name].UID && now.DeletionTimestamp == nil {
			continue
		}
		who := z.since(start, func(w sandbox.Write) bool {
			return w.Object() == "pods/"+name && (w.Verb == "delete" || w.Resource == "pods/eviction")
		})
		z.report(fmt.Errorf("pod %s was in use, and is gone: %v", name, who))
		kind, _ := invariants.ComponentOf(used[name])
		found = append(found, kind)
	}
	return found
}

// restarts are how often each kind of component was created, by kind.
type restarts invariants.Restarts

func (z *zone) restarts(from Mark) restarts {
	z.Helper()
	counts, err := invariants.CountRestarts(z.since(from, func(sandbox.Write) bool { return true }))
	z.must(err)
	return restarts(counts)
}

// moreThan are the kinds that were restarted more often than allowed.
func (r restarts) moreThan(allowed int) []string { return invariants.Restarts(r).MoreThan(allowed) }

// deletedByFairlead reports whether Fairlead has deleted an instance manager since. Longhorn deletes idle instance managers by itself; it
// sometimes does so once more than needed, from a stale cache (seen with v1.8.1), and nothing holds it back.
func (z *zone) deletedByFairlead(from Mark) bool {
	z.Helper()
	return len(z.since(from, func(w sandbox.Write) bool {
		return w.Verb == "delete" && w.Resource == "pods" && strings.HasPrefix(w.Name, "instance-manager-") && ByFairlead(w)
	})) > 0
}

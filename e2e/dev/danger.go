package main

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// dangerZone shows a setting that restarts every component of the storage
// system: what it would do, what it does at once, and what waits for what.
func dangerZone(ctx context.Context, t *tourist, s *sandbox.Sandbox) error {
	const ns, setting, class = "-n=longhorn-system", "priority-class", "system-cluster-critical"
	reason := "-o=jsonpath={.status.applied} {.status.conditions[0].reason}"

	t.say("Another setting of the danger zone. What would a change do, with the volume in use?")
	t.fairlead(ctx, "plan", "--set", setting+"="+class)

	t.say("Nothing that serves the volume restarts; instance managers that run nothing do, at once, one by one")
	t.run(ctx, ns, "patch", "settings.longhorn.io", setting, "--type=merge", `-p={"value":"`+class+`"}`)
	if err := t.until(ctx, "the idle instance manager has restarted", func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, "", ns, "get", "pods", "-l=longhorn.io/component=instance-manager,longhorn.io/node=node-3", "-o=jsonpath={.items[*].spec.priorityClassName}{.items[*].status.phase}")
		return out == class+"Running", err
	}); err != nil {
		return err
	}
	t.run(ctx, ns, "get", "settings.fairlead.io", setting)
	t.run(ctx, ns, "get", "pods", "-l=longhorn.io/component=instance-manager", "-o=custom-columns=POD:.metadata.name,NODE:.spec.nodeName,CLASS:.spec.priorityClassName")

	t.say("The workloads stop; the rest follows by itself")
	t.run(ctx, "scale", "statefulset/web", "statefulset/db", "--replicas=0")
	var detached time.Time
	for _, volume := range []string{sandbox.SharedVolume, sandbox.OwnVolume} {
		if err := s.WaitAttached(ctx, volume, false); err != nil {
			return err
		}
		detached = time.Now()
		if err := s.Longhorn().Detach(ctx, volume); err != nil {
			return err
		}
	}
	if err := t.until(ctx, "every component has the value", func(ctx context.Context) (bool, error) {
		out, err := s.Kubectl(ctx, "", ns, "get", "settings.fairlead.io", setting, reason)
		return out == "true Applied", err
	}); err != nil {
		return err
	}
	t.note("applied %.1f s after the last detach", time.Since(detached).Seconds())
	t.run(ctx, ns, "get", "settings.fairlead.io", setting)
	t.run(ctx, ns, "get", "settings.longhorn.io", setting)
	t.run(ctx, ns, "get", "pods", "-o=custom-columns=POD:.metadata.name,NODE:.spec.nodeName,CLASS:.spec.priorityClassName")
	return t.err
}

// longhornIsHeldOff does what Longhorn's sync of the RWX switch does now: it restarts instance managers for
// storage-network, which still waits, also the one that serves the database's volume.
func longhornIsHeldOff(ctx context.Context, t *tourist, s *sandbox.Sandbox) error {
	const ns = "-n=longhorn-system"
	t.say("Longhorn itself would restart an instance manager in use now (storage-network still waits for it); Fairlead refuses that to Longhorn")
	pod, err := s.Kubectl(ctx, "", ns, "get", "pods", "-l=longhorn.io/component=instance-manager,longhorn.io/node=node-1", "-o=jsonpath={.items[0].metadata.name}")
	if err != nil {
		return err
	}
	t.refusedWith(ctx, "which is attached", ns, "delete", "pod", pod, "--as=system:serviceaccount:longhorn-system:longhorn-service-account", "--as-group=system:masters")
	return nil
}

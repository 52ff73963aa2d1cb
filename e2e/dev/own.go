package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

var errDeclined = errors.New("nothing was changed")

// demoOnOwnCluster shows on the user's own cluster, after asking, the part of
// the tour that changes nothing there: what is installed, and dry runs.
func demoOnOwnCluster(ctx context.Context) error {
	t := newTour(os.Stdout)
	t.kubectl = func(ctx context.Context, stdin string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "kubectl", args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return string(out), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
		}
		return string(out), nil
	}
	t.say("Your own cluster, from KUBECONFIG=" + os.Getenv("KUBECONFIG"))
	t.run(ctx, "config", "current-context")
	t.run(ctx, "cluster-info")
	if t.err != nil {
		return fmt.Errorf("that cluster can't be reached: %w", t.err)
	}
	fmt.Print("Install Fairlead there from manifests/overlays/cert-manager? It adds a namespace, two CRDs and webhooks,\n" +
		"and changes no setting of your storage system. Type yes to go on: ")
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return errDeclined
	}
	t.say("Installing")
	t.run(ctx, "apply", "--server-side", "-k", "manifests/overlays/cert-manager")
	t.run(ctx, "-n=fairlead-system", "rollout", "status", "deployment/fairlead-webhook", "--timeout=3m")
	if t.err != nil {
		return t.err
	}
	t.say("A value that can't be right is refused (a dry run: nothing is changed)")
	t.refused(ctx, "-n=longhorn-system", "patch", "settings.fairlead.io", "storage-network", "--type=merge", `-p={"value":"kube-system"}`, "--dry-run=server")
	t.say("What turning the network on for RWX volumes would do (a dry run)")
	t.run(ctx, "-n=longhorn-system", "patch", "settings.fairlead.io", "storage-network-for-rwx-volume-enabled", "--type=merge", `-p={"value":"true"}`, "--dry-run=server")
	t.say("Your settings as Fairlead sees them. To remove it: kubectl delete -k manifests/overlays/cert-manager")
	t.run(ctx, "-n=longhorn-system", "get", "settings.fairlead.io,networkrollouts")
	return t.err
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

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
	if _, err := t.kubectl(ctx, "", "get", "validatingwebhookconfiguration", "fairlead"); err == nil {
		t.say("Fairlead is there already: nothing is installed")
		return dryRuns(ctx, t)
	}
	if err := fits(ctx, t); err != nil {
		return err
	}
	fmt.Print("Install Fairlead there from manifests/overlays/cert-manager? It adds a namespace, three CRDs and webhooks,\n" +
		"and changes no setting of your storage system. Type yes to go on: ")
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "yes" {
		fmt.Println("\nNothing was changed.")
		return nil
	}
	t.say("Installing, with image " + os.Getenv(imageVariable))
	t.run(ctx, "apply", "--server-side", "-k", "manifests/overlays/cert-manager")
	for _, deployment := range []string{"webhook", "controller"} {
		t.run(ctx, "-n=fairlead-system", "set", "image", "deployment/fairlead-"+deployment, deployment+"="+os.Getenv(imageVariable))
		t.run(ctx, "-n=fairlead-system", "rollout", "status", "deployment/fairlead-"+deployment, "--timeout=3m")
	}
	if t.err != nil {
		return fmt.Errorf("%w\nuntil it runs, changes of the settings of the danger zone are refused there; to remove it: kubectl delete -k manifests/overlays/cert-manager", t.err)
	}
	return dryRuns(ctx, t)
}

// imageVariable names the image to install: there is none that everybody can pull.
const imageVariable = "FAIRLEAD_IMAGE"

// fits looks for what Fairlead needs there, before anything is changed.
func fits(ctx context.Context, t *tourist) error {
	for _, crd := range []string{"certificates.cert-manager.io", "settings.longhorn.io", "network-attachment-definitions.k8s.cni.cncf.io"} {
		if _, err := t.kubectl(ctx, "", "get", "crd", crd); err != nil {
			return fmt.Errorf("that cluster has no %s: Fairlead works with cert-manager, Longhorn and Multus", crd)
		}
	}
	if os.Getenv(imageVariable) == "" {
		return fmt.Errorf("%s does not name the image to install: build and push one first (README, Install)", imageVariable)
	}
	return nil
}

// dryRuns shows what Fairlead says there, changing nothing.
func dryRuns(ctx context.Context, t *tourist) error {
	t.say("A value that can't be right is refused (a dry run: nothing is changed)")
	t.refused(ctx, "-n=longhorn-system", "patch", "settings.fairlead.io", "storage-network", "--type=merge", `-p={"value":"kube-system"}`, "--dry-run=server")
	t.say("What turning the network on for RWX volumes would do (a dry run)")
	t.run(ctx, "-n=longhorn-system", "patch", "settings.fairlead.io", "storage-network-for-rwx-volume-enabled", "--type=merge", `-p={"value":"true"}`, "--dry-run=server")
	t.say("Your settings as Fairlead sees them. To remove it: kubectl delete -k manifests/overlays/cert-manager")
	t.run(ctx, "-n=longhorn-system", "get", "settings.fairlead.io,networkrollouts")
	return t.err
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/cluster"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

func run(ctx context.Context, stop func(), args []string) error {
	options := cluster.Defaults()
	flags := flag.NewFlagSet("controlplane run", flag.ContinueOnError)
	flags.StringVar(&options.Dir, "dir", "", "`folder` for everything that is written: data, certificates, logs, kubeconfig")
	flags.IntVar(&options.Nodes, "nodes", options.Nodes, "how many simulated nodes there are")
	flags.StringVar(&options.ClusterDomain, "cluster-domain", options.ClusterDomain, "the cluster's DNS `domain`")
	flags.BoolVar(&options.FastNodeLoss, "fast-node-loss", false, "a lost node is NotReady after 12 seconds instead of 50")
	flags.StringVar(&options.AuditGroup, "audit-group", "", "`group` of users whose requests are recorded in logs/audit.log")
	flags.BoolVar(&options.AuditWrites, "audit-writes", false, "all writes are recorded in logs/audit.log, with what came of each")
	flags.BoolVar(&options.NoAttacher, "no-attacher", false, "VolumeAttachments are left to the attachers of CSI drivers")
	flags.StringVar(&options.Address, "address", "", "the `IP address` at which kubelets and pods reach the API server")
	flags.Func("kubelet", "the `name` of a node that has a kubelet: pki/NAME.kubeconfig is written for it, and pki/kube-proxy.kubeconfig for all; may be repeated", func(name string) error {
		options.Kubelets = append(options.Kubelets, name)
		return nil
	})
	flags.Func("forward", "a port of pods that kubectl port-forward reaches, as `NAMESPACE:PODPORT=LOCALPORT`; may be repeated", func(text string) error {
		forward, err := cluster.ParseForward(text)
		options.Forwards = append(options.Forwards, forward)
		return err
	})
	untilStdinCloses := flags.Bool("until-stdin-closes", false, "stop when the standard input ends")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return err
	}
	var err error
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return fmt.Errorf("finding --dir: %w", err)
	}
	if *untilStdinCloses {
		go whenClosed(os.Stdin, stop)
	}

	report := progress.New(os.Stderr, heartbeat)
	if options.Cache, err = binaries.ControlPlane(ctx, report); err != nil {
		return err
	}
	began := time.Now()
	return cluster.Run(ctx, options, report, func(state cluster.State) {
		text := fmt.Sprintf("the control plane is ready in %s", progress.Elapsed(began))
		if !*untilStdinCloses { // else a program started it, and offers a kubeconfig of its own
			text += ": KUBECONFIG=" + state.Kubeconfig
		}
		fmt.Println(text)
	})
}

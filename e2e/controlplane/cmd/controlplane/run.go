package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/cachedir"
	"github.com/fairlead-io/fairlead/e2e/controlplane/cluster"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

func run(stop *stop, args []string) error {
	options := cluster.Defaults()
	flags := flag.NewFlagSet("controlplane run", flag.ContinueOnError)
	flags.StringVar(&options.Dir, "dir", "", "`folder` for everything that is written: data, certificates, logs, kubeconfig")
	flags.IntVar(&options.Nodes, "nodes", options.Nodes, "how many simulated nodes there are")
	flags.StringVar(&options.ClusterDomain, "cluster-domain", options.ClusterDomain, "the cluster's DNS `domain`")
	flags.BoolVar(&options.FastNodeLoss, "fast-node-loss", false, "a lost node is NotReady after 12 seconds instead of 50")
	flags.StringVar(&options.AuditGroup, "audit-group", "", "`group` of users whose requests are recorded in logs/audit.log")
	flags.BoolVar(&options.AuditWrites, "audit-writes", false, "all writes are recorded in logs/audit.log, with what came of each")
	flags.BoolVar(&options.NoAttacher, "no-attacher", false, "VolumeAttachments are left to the attachers of CSI drivers")
	flags.Func("forward", "a port of pods that kubectl port-forward reaches, as `NAMESPACE:PODPORT=LOCALPORT`; may be repeated", func(text string) error {
		forward, err := cluster.ParseForward(text)
		options.Forwards = append(options.Forwards, forward)
		return err
	})
	untilStdinCloses := flags.Bool("until-stdin-closes", false, "stop when the standard input ends")
	flags.Func("service-cidr", "`ranges` of Services, one per IP family (default "+join(options.ServiceCIDRs)+")", func(text string) error {
		var err error
		options.ServiceCIDRs, err = parsePrefixes(text)
		return err
	})
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
	if options.Cache, err = cachedir.Open(runtime.Version()); err != nil {
		return err
	}
	if *untilStdinCloses {
		go stop.whenClosed(os.Stdin)
	}

	report := progress.New(os.Stderr, heartbeat)
	if err := binaries.Ensure(stop.ctx, options.Cache, report); err != nil {
		return err
	}
	return cluster.Run(stop.ctx, stop.hurry, options, report, func(state cluster.State) {
		took := time.Duration(state.ReadyAfterSeconds * float64(time.Second))
		text := "the control plane is ready in " + progress.Elapsed(took)
		if !*untilStdinCloses { // else a program started it, and offers a kubeconfig of its own
			text += ": KUBECONFIG=" + state.Kubeconfig
		}
		fmt.Println(text)
	})
}

func parsePrefixes(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for item := range strings.SplitSeq(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

func join(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}

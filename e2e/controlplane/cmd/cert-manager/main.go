// cert-manager runs cert-manager's own controllers for SelfSigned and CA
// issuers and its CA injector, in one process.
//
// cert-manager's binaries are modules of their own that can't be imported, but
// the controllers are ordinary packages: what runs here is their code, only the
// process around them is ours. ACME, Vault and the other issuers are left out
// because nothing on a loopback-only control plane could answer them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	kubeconfig := flag.String("cluster-kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster to serve")
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "namespace that holds the Secrets of ClusterIssuers")
	klog.InitFlags(nil)
	flag.Parse()

	if err := run(*kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// run keeps the two halves together: a cluster with only one of them would look
// healthy and never inject or never issue.
func run(kubeconfig, namespace string) error {
	ctrl.SetLogger(logf.Log)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	group, ctx := errgroup.WithContext(logf.NewContext(ctx, logf.Log, "controller"))
	group.Go(func() error { return runIssuing(ctx, kubeconfig, namespace) })
	group.Go(func() error { return runInjector(ctx, kubeconfig) })
	return group.Wait()
}

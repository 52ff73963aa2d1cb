package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	approver "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestsca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestsselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	// The issuer types register themselves when they are imported.
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"golang.org/x/sync/errgroup"
)

// workersPerController is cert-manager's own default (--concurrent-workers).
const workersPerController = 5

// issuingControllers are the controllers that take a Certificate from created
// to Ready with SelfSigned and CA issuers, renewal included.
func issuingControllers() []string {
	return []string{
		issuers.ControllerName,
		clusterissuers.ControllerName,
		trigger.ControllerName,
		keymanager.ControllerName,
		requestmanager.ControllerName,
		issuing.ControllerName,
		readiness.ControllerName,
		revisionmanager.ControllerName,
		approver.ControllerName,
		requestsca.CRControllerName,
		requestsselfsigned.CRControllerName,
	}
}

func runIssuing(ctx context.Context, kubeconfig, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   50,
		KubernetesAPIBurst: 100,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			// cert-manager's own default: everything but what tools keep for
			// themselves.
			CopiedAnnotationPrefixes: []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			// A request that failed is tried again soon: tests can't wait out
			// cert-manager's default of an hour.
			CertificateRequestMinimumBackoffDuration: 2 * time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the issuing controllers: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("building the clients of the issuing controllers: %w", err)
	}

	known := controller.Known()
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range issuingControllers() {
		construct, ok := known[name]
		if !ok {
			return fmt.Errorf("controller %q is not registered in this version of cert-manager", name)
		}
		instance, err := construct(factory)
		if err != nil {
			return fmt.Errorf("constructing controller %q: %w", name, err)
		}
		group.Go(func() error { return instance.Run(workersPerController, ctx) })
	}

	// The informers start last: constructing a controller is what asks for them.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

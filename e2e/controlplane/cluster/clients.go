package cluster

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fieldManager is the name under which objects are applied and owned.
const fieldManager = "fairlead-controlplane"

// clients are the harness' own, with an administrator's rights.
type clients struct {
	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

func newClients(kubeconfig string) (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.UserAgent = fieldManager
	// No limit: everything that is asked for is needed before the start is over.
	config.QPS = -1
	// Dozens of CRDs in a row give warnings about formats that nobody can act on.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	result := clients{config: config}
	if result.typed, err = kubernetes.NewForConfig(config); err != nil {
		return clients{}, fmt.Errorf("making a client: %w", err)
	}
	if result.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return clients{}, fmt.Errorf("making a dynamic client: %w", err)
	}
	return result, nil
}

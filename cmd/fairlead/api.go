package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settingsapi"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// apiServer returns the server of the REST API; nil if address is empty.
func apiServer(address string, c *config.Configuration, restConfig *rest.Config, source certs.Source, scheme *runtime.Scheme, log *slog.Logger) (*settingsapi.Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	tlsConfig := &tls.Config{} // callers authenticate with tokens, not certificates
	admission.ServingTLS(source)(tlsConfig)
	// The API has its own clients and rate limits, so that admission never waits for the API.
	own := rest.CopyConfig(restConfig)
	own.UserAgent = "fairlead-api/" + cli.Version
	own.QPS, own.Burst = 20, 40
	live, err := client.New(own, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the API's client: %w", err)
	}
	// Token reviews have a separate client, so that callers with unknown tokens do not delay known callers.
	tokens, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("building the API's client for tokens: %w", err)
	}
	access, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("building the API's client for access: %w", err)
	}
	var profiles []settingsapi.Profile
	for _, p := range storageProfiles(c) {
		profiles = append(profiles, settingsapi.Profile{Profile: p, Live: cluster.NewReader(p, live, live)})
	}
	handler, err := settingsapi.NewRouter(settingsapi.Options{
		Profiles: profiles, Cluster: own, Scheme: scheme, Log: log,
		Tokens: tokens.AuthenticationV1().TokenReviews(), Access: access.AuthorizationV1().SubjectAccessReviews(),
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the API: %w", err)
	}
	return &settingsapi.Server{Listener: listener, TLS: tlsConfig, Handler: handler, Log: log}, nil
}

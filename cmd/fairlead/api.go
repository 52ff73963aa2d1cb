package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settingsapi"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// apiServer returns the server of the REST API; nil if address is empty.
func apiServer(address string, c *config.Configuration, restConfig *rest.Config, mapper meta.RESTMapper, source certs.Source, scheme *runtime.Scheme, log *slog.Logger) (*manager.Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	tlsConfig := &tls.Config{} // callers authenticate with tokens, not certificates
	admission.ServingTLS(source)(tlsConfig)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the API: %w", err)
	}
	own := rest.CopyConfig(restConfig)
	own.UserAgent = "fairlead-api/" + cli.Version
	handler := settingsapi.NewRouter(settingsapi.Options{Profiles: storageProfiles(c), Cluster: own, Mapper: mapper, Scheme: scheme, Log: log})
	return settingsapi.NewServer("API", listener, tlsConfig, admission.Recoverer(log)(handler), log), nil
}

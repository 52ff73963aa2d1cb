package e2e

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// heard collects the warnings that the API server sends.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

// createWithWarnings creates an object and returns the warnings that came with it.
func (c *cluster) createWithWarnings(o client.Object) []string {
	c.t.Helper()
	h := &heard{}
	config := rest.CopyConfig(c.Config)
	config.WarningHandlerWithContext = h
	warned, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	c.must(err)
	c.must(warned.Create(c.t.Context(), o))
	return h.texts
}

package settingsapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// writer changes settings with the tokens of callers.
type writer struct {
	// anonymous has the API server's address and its CA, and no credentials.
	anonymous  *rest.Config
	connection http.RoundTripper
	serializer runtime.NegotiatedSerializer
}

func newWriter(c *rest.Config, scheme *runtime.Scheme) (writer, error) {
	anonymous := rest.AnonymousClientConfig(c)
	anonymous.APIPath = "/apis"
	anonymous.ContentType, anonymous.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// Each request has its own client, so a limit per client has no effect.
	anonymous.QPS, anonymous.RateLimiter = -1, nil
	anonymous.WarningHandler, anonymous.WarningHandlerWithContext = nil, nil
	connection, err := rest.TransportFor(anonymous)
	if err != nil {
		return writer{}, fmt.Errorf("building the connection for callers' changes: %w", err)
	}
	return writer{anonymous, connection, serializer.NewCodecFactory(scheme).WithoutConversion()}, nil
}

// client returns a client with the token. All clients share the connections.
func (w writer) client(token string, group schema.GroupVersion, warnings rest.WarningHandler) (rest.Interface, error) {
	config := rest.CopyConfig(w.anonymous)
	config.GroupVersion, config.NegotiatedSerializer, config.WarningHandler = &group, w.serializer, warnings
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: transport.NewBearerAuthRoundTripper(token, w.connection)})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return client, nil
}

// write sends the change with the token, and returns the warnings of the API server
// and of the webhooks.
func (w writer) write(ctx context.Context, token string, t target, value string, conditional bool) ([]string, error) {
	var warnings collector
	client, err := w.client(token, t.GroupVersion, &warnings)
	if err != nil {
		return nil, err
	}
	method, body, err := t.request(value, conditional)
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	request := client.Verb(method).Namespace(t.namespace).Resource(resource).
		Param("fieldManager", "fairlead-api").Param("fieldValidation", "Strict").Body(body)
	if method == http.MethodPatch {
		request.Name(t.name).SetHeader("Content-Type", string(types.MergePatchType))
	} else {
		request.SetHeader("Content-Type", runtime.ContentTypeJSON)
	}
	err = request.Do(ctx).Error()
	return warnings.all(), err
}

// collector keeps warnings, each once.
type collector struct {
	sync.Mutex
	texts []string
}

// HandleWarningHeader is client-go's WarningHandler.
func (c *collector) HandleWarningHeader(code int, _, text string) {
	if code != 299 || text == "" { // the API server sends no other code
		return
	}
	c.Lock()
	defer c.Unlock()
	for _, known := range c.texts {
		if known == text {
			return
		}
	}
	c.texts = append(c.texts, text)
}

func (c *collector) all() []string {
	c.Lock()
	defer c.Unlock()
	return c.texts
}

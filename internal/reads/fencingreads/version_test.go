package fencingreads_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A list, an event of another node and a bookmark each raise the version.
func TestCacheReportsVersionOfNodes(t *testing.T) {
	const node = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"node-1","resourceVersion":"%s"}}`
	events := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusBadRequest) // then it lists
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
		case query.Get("watch") == "":
			fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`+node+`]}`, "3")
		default:
			w.(http.Flusher).Flush()
			for {
				select {
				case event := <-events:
					fmt.Fprintln(w, event)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	scheme := testkit.Value[*runtime.Scheme](t)(reads.NewScheme())
	options, err := caches.ControllerCache(nil, config.Fencing{
		CephClients: config.CephClients{Mode: config.Off}, Profiles: []config.FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: config.Fence}},
	})
	must.Do(t, err)
	maps.DeleteFunc(options.ByObject, func(o client.Object, _ cache.ByObject) bool {
		_, node := o.(*corev1.Node)
		return !node
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	options.Scheme, options.Mapper = scheme, mapper
	objects, err := cache.New(&rest.Config{Host: server.URL}, options)
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // before the server ends: else it is asked again
	go func() { _ = objects.Start(ctx) }()
	version := fencingreads.VersionOfNodes(objects)
	for _, step := range []struct{ event, want string }{
		{"", "7"},
		{`{"type":"MODIFIED","object":` + fmt.Sprintf(node, "9") + `}`, "9"},
		{`{"type":"BOOKMARK","object":` + fmt.Sprintf(node, "12") + `}`, "12"},
	} {
		if step.event != "" {
			events <- step.event
		}
		deadline := time.After(30 * time.Second)
		for version(t.Context()) != step.want {
			select {
			case <-deadline:
				t.Fatalf("is at %q, want %s", version(t.Context()), step.want)
			case <-time.After(time.Millisecond):
			}
		}
	}
}

package apiserver

import (
	"context"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// StartCache returns a running cache of what a server has, with indexes.
func StartCache(tb testing.TB, server *Server, options cache.Options, index func(cache.Cache) error) cache.Cache {
	tb.Helper()
	listening := httptest.NewServer(server)
	options.Mapper = server.Mapper()
	objects, err := cache.New(&rest.Config{Host: listening.URL, QPS: -1}, options)
	if err != nil {
		tb.Fatal(err)
	}
	if err := index(objects); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- objects.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		listening.CloseClientConnections()
		listening.Close()
	})
	if !objects.WaitForCacheSync(ctx) {
		tb.Fatal("the cache did not start")
	}
	return objects
}

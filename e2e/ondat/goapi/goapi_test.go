package goapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/antihax/optional"
	api "github.com/storageos/go-api/v2"

	"github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

// client is the real client, logged in as the released manager does (api-manager, client.go).
func client(t *testing.T, s *ondat.Server) (*api.DefaultApiService, context.Context) {
	t.Helper()
	server := s.Start()
	t.Cleanup(server.Close)
	config := api.NewConfiguration()
	config.BasePath = server.URL + "/v2"
	c := api.NewAPIClient(config).DefaultApi
	user, resp, err := c.AuthenticateUser(t.Context(), api.AuthUserData{Username: s.Username, Password: s.Password})
	if err != nil || user.Session.ExpiresInSeconds != 300 || user.Session.Token == "" || resp.Header.Get("Authorization-Expires-Seconds") != "300" {
		t.Fatalf("got %+v, %v", user, err)
	}
	token := strings.TrimPrefix(resp.Header.Get("Authorization"), "Bearer ")
	if token != user.Session.Token {
		t.Fatalf("header %q, body %q", token, user.Session.Token)
	}
	return c, context.WithValue(t.Context(), api.ContextAccessToken, token)
}

func TestSharedVolumeThroughTheRealClient(t *testing.T) {
	s := ondat.New()
	s.AddNamespace("team-id", "team")
	s.Provision("team-id", "v-1", "pv-1", "data", "apps")
	c, ctx := client(t, s)
	namespaces, _, err := c.ListNamespaces(ctx)
	if err != nil || len(namespaces) != 2 || namespaces[1].Id != "team-id" || namespaces[1].Name != "team" || namespaces[1].Version == "" {
		t.Fatalf("got %+v, %v", namespaces, err)
	}
	read := func() api.Volume {
		t.Helper()
		volumes, _, err := c.ListVolumes(ctx, "team-id")
		if err != nil || len(volumes) != 1 {
			t.Fatalf("got %+v, %v", volumes, err)
		}
		one, _, err := c.GetVolume(ctx, "team-id", "v-1")
		if err != nil || one.Version != volumes[0].Version {
			t.Fatalf("got %+v, %v", one, err)
		}
		return volumes[0]
	}
	v := read()
	if v.NamespaceID != "team-id" || v.Name != "pv-1" || v.AttachmentType != api.ATTACHTYPE_DETACHED || v.Nfs.ServiceEndpoint != nil ||
		v.Labels["csi.storage.k8s.io/pvc/name"] != "data" || v.Labels["csi.storage.k8s.io/pvc/namespace"] != "apps" || v.Labels["csi.storage.k8s.io/pv/name"] != "pv-1" ||
		v.Master.Health != api.MASTERHEALTH_ONLINE || v.SizeBytes != 1<<30 || v.CreatedAt.IsZero() || len(v.Version) > 30 {
		t.Fatalf("got %+v", v)
	}
	s.Attach("v-1", "10.0.0.1:32001")
	v = read()
	if v.AttachmentType != api.ATTACHTYPE_NFS || *v.Nfs.ServiceEndpoint != "10.0.0.1:32001" || (*v.Nfs.Exports)[0].PseudoPath != "/" {
		t.Fatalf("got %+v", v)
	}
	resp, err := c.UpdateNFSVolumeMountEndpoint(ctx, "team-id", "v-1", api.NfsVolumeMountEndpoint{MountEndpoint: "10.96.0.1:2049", Version: v.Version}, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v", err)
	}
	if got := read(); got.Labels["storageos.com/nfs/mount-endpoint"] != "10.96.0.1:2049" || got.Version == v.Version {
		t.Fatalf("got %+v", got)
	}
	resp, err = c.UpdateNFSVolumeMountEndpoint(ctx, "team-id", "v-1", api.NfsVolumeMountEndpoint{MountEndpoint: "10.96.0.2:2049", Version: v.Version}, nil)
	if err == nil || resp.StatusCode != http.StatusPreconditionFailed || !strings.Contains(api.MapAPIError(err, resp).Error(), "stale") {
		t.Fatalf("an old version: got %v", err)
	}
	force := &api.UpdateNFSVolumeMountEndpointOpts{IgnoreVersion: optional.NewBool(true)}
	if _, err = c.UpdateNFSVolumeMountEndpoint(ctx, "team-id", "v-1", api.NfsVolumeMountEndpoint{Version: v.Version}, force); err != nil {
		t.Fatal(err)
	}
	if label, ok := read().Labels["storageos.com/nfs/mount-endpoint"]; ok {
		t.Fatalf("an empty endpoint leaves %q", label)
	}
	s.LoseServer("v-1")
	if v := read(); v.AttachmentType != api.ATTACHTYPE_NFS || v.Nfs.ServiceEndpoint != nil {
		t.Fatalf("failing over: got %+v", v)
	}
	s.Detach("v-1")
	if v := read(); v.AttachmentType != api.ATTACHTYPE_DETACHED || v.Nfs.ServiceEndpoint != nil {
		t.Fatalf("detached: got %+v", v)
	}
}

func TestRefusalsThroughTheRealClient(t *testing.T) {
	s := ondat.New()
	c, ctx := client(t, s)
	code := func(resp *http.Response, err error) int {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		if model, ok := err.(api.GenericOpenAPIError).Model().(api.Error); !ok || model.Error == "" {
			t.Errorf("the body is not go-api's Error: %v", err)
		}
		return resp.StatusCode
	}
	// The client reads no body here: openapi.yaml has no 404 for the list.
	_, resp, err := c.ListVolumes(ctx, "none")
	if err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown namespace: %v", err)
	}
	_, resp, err = c.GetVolume(ctx, "default-id", "none")
	if got := code(resp, err); got != http.StatusNotFound {
		t.Errorf("an unknown volume: %d", got)
	}
	_, resp, err = c.AuthenticateUser(ctx, api.AuthUserData{Username: s.Username, Password: "wrong"})
	if got := code(resp, err); got != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", got)
	}
	_, resp, err = c.ListNamespaces(t.Context())
	if got := code(resp, err); got != http.StatusUnauthorized {
		t.Errorf("no token: %d", got)
	}
	user, resp, err := c.RefreshJwt(ctx)
	if err != nil || user.Session.ExpiresInSeconds != 300 || resp.Header.Get("Authorization-Expires-In") != "300" {
		t.Errorf("refresh: %+v, %v", user, err)
	}
	s.EndSessions()
	_, resp, err = c.RefreshJwt(ctx)
	if got := code(resp, err); got != http.StatusUnauthorized {
		t.Errorf("a session that ended: %d", got)
	}
}

package settingsapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	ownToken    = "fairleads-own-token"
	aliceToken  = "alices-token"
	settingName = "storage-network"
)

// write is a change that the API server received.
type write struct {
	method, path, token, contentType string
	body                             map[string]any
}

// apiServer receives reads and changes. Objects are read from a fake client.
type apiServer struct {
	t *testing.T
	sync.Mutex
	// may is what alice's RBAC allows, as <verb> <group>.
	may map[string]bool
	// refusal of the next change, and the warnings that come with it.
	refusal  *metav1.Status
	warnings []string
	// broken answers every read with an error.
	broken bool
	// onWrite applies a change to the objects.
	onWrite func(write)
	writes  []write
	objects client.Client
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	reply := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		reply(int(err.ErrStatus.Code), err.ErrStatus)
	}
	group := strings.Split(r.URL.Path, "/")[2]
	verb := map[string]string{http.MethodGet: "list", http.MethodPost: "create", http.MethodPatch: "patch"}[r.Method]
	switch {
	case token != aliceToken:
		refuse(apierrors.NewUnauthorized("Unauthorized"))
	case s.broken:
		refuse(apierrors.NewInternalError(io.ErrUnexpectedEOF))
	case !s.may[verb+" "+group]:
		forbidden := fmt.Errorf("User %q cannot %s resource %q in API group %q", "alice", verb, "settings", group)
		refuse(apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "settings"}, "", forbidden))
	case r.Method == http.MethodGet:
		var list client.ObjectList = &v1alpha1.SettingList{}
		if group == longhorn.GroupVersion.Group {
			list = &longhorn.SettingList{}
		}
		must.Do(s.t, s.objects.List(r.Context(), list))
		reply(200, list)
	default:
		data, _ := io.ReadAll(r.Body)
		got := write{r.Method, r.URL.Path, token, r.Header.Get("Content-Type"), nil}
		s.decode(data, &got.body)
		s.writes = append(s.writes, got)
		for _, text := range s.warnings {
			w.Header().Add("Warning", `299 - "`+text+`"`)
		}
		if s.refusal != nil {
			reply(int(s.refusal.Code), s.refusal)
			return
		}
		if s.onWrite != nil {
			s.onWrite(got)
		}
		version := strings.Split(r.URL.Path, "/")[3]
		reply(200, map[string]any{"apiVersion": group + "/" + version, "kind": "Setting", "metadata": map[string]any{"name": settingName}})
	}
}

func (s *apiServer) decode(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		s.t.Errorf("%s: %v", data, err)
	}
}

// everything that alice may need.
func everything() map[string]bool {
	return map[string]bool{"list fairlead.io": true, "list longhorn.io": true, "patch fairlead.io": true, "create fairlead.io": true, "patch longhorn.io": true}
}

type fixture struct {
	*apiServer
	handler http.Handler
	log     *strings.Builder
}

func newFixture(t *testing.T, stored ...client.Object) *fixture {
	t.Helper()
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	server := &apiServer{t: t, may: everything(), objects: fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build()}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind("Setting"), meta.RESTScopeNamespace)
	mapper.Add(longhorn.GroupVersion.WithKind("Setting"), meta.RESTScopeNamespace)
	f := &fixture{apiServer: server, log: &strings.Builder{}}
	f.handler = NewRouter(Options{
		Names: objects.Longhorn, Mapper: mapper, Scheme: scheme,
		Cluster: &rest.Config{Host: listening.URL, BearerToken: ownToken},
		Log:     slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return f
}

// do sends a request as alice, unless headers say otherwise.
func (f *fixture) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

func ours(value *string) *v1alpha1.Setting {
	return &v1alpha1.Setting{ObjectMeta: objects.Here(settingName), Value: value}
}

func theirs(value string) *longhorn.Setting {
	return &longhorn.Setting{ObjectMeta: objects.Here(settingName), Value: value}
}

// status of an answer that refuses.
func status(t *testing.T, w *httptest.ResponseRecorder) (s metav1.Status) {
	t.Helper()
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &s))
	return s
}

package settingsapi

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
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

// apiServer receives reviews and changes. Objects are read from a fake client.
type apiServer struct {
	t *testing.T
	sync.Mutex
	// may is what alice's RBAC allows, as <verb> <group>.
	may map[string]bool
	// refusal of the next change, and the warnings that come with it.
	refusal  *metav1.Status
	warnings []string
	// broken answers every review with an error.
	broken bool
	// onWrite applies a change to the objects.
	onWrite func(write)
	// onTokenReview delays a review.
	onTokenReview func(token string)
	tokenReviews  int
	writes        []write
	reviews       []authorizationv1.SubjectAccessReviewSpec
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
	isReview := strings.HasSuffix(r.URL.Path, "reviews")
	if isReview && token != ownToken {
		s.t.Errorf("%s with token %q, want Fairlead's own", r.URL.Path, token)
	}
	data, _ := io.ReadAll(r.Body)
	switch {
	case isReview && s.broken:
		reply(500, apierrors.NewInternalError(io.ErrUnexpectedEOF).Status())
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		s.decode(data, &review)
		s.tokenReviews++
		if s.onTokenReview != nil {
			s.Unlock()
			s.onTokenReview(review.Spec.Token)
			s.Lock()
		}
		if review.Spec.Token == aliceToken {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: "alice", Groups: []string{"ops"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}},
			}}
		}
		reply(201, review)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		s.decode(data, &review)
		s.reviews = append(s.reviews, review.Spec)
		review.Status.Allowed = s.may[review.Spec.ResourceAttributes.Verb+" "+review.Spec.ResourceAttributes.Group]
		reply(201, review)
	default:
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
		reply(200, got.body)
	}
}

func (s *apiServer) decode(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		s.t.Errorf("%s: %v", data, err)
	}
}

// everything that alice may need.
func everything() map[string]bool {
	return map[string]bool{"get fairlead.io": true, "list fairlead.io": true, "patch fairlead.io": true, "create fairlead.io": true, "patch longhorn.io": true}
}

type fixture struct {
	*apiServer
	handler http.Handler
	api     *api
	objects client.Client
	log     *strings.Builder
}

func newFixture(t *testing.T, stored ...client.Object) *fixture {
	t.Helper()
	server := &apiServer{t: t, may: everything()}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	config := &rest.Config{Host: listening.URL, QPS: -1, BearerToken: ownToken, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	clientset, err := kubernetes.NewForConfig(config)
	must.Do(t, err)
	reads := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build()
	f := &fixture{apiServer: server, objects: reads, log: &strings.Builder{}}
	f.api, err = newAPI(Options{
		Profiles: []Profile{{Profile: objects.Longhorn, Live: cluster.NewReader(objects.Longhorn, reads, reads)}},
		Tokens:   clientset.AuthenticationV1().TokenReviews(), Access: clientset.AuthorizationV1().SubjectAccessReviews(),
		Cluster: config, Scheme: scheme, Log: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	must.Do(t, err)
	f.handler = f.api.router()
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

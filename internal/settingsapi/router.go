package settingsapi

import (
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Profile is a storage profile with its reader.
type Profile struct {
	storage.Profile
	// Live reads from the API server.
	Live *cluster.Reader
}

// Options of the API.
type Options struct {
	// Profiles has at least one profile. The first is the default of requests.
	Profiles []Profile
	Tokens   authenticationv1.TokenReviewInterface
	Access   authorizationv1.SubjectAccessReviewInterface
	// Cluster has the address and the CA of the API server. Its credentials are not used.
	Cluster *rest.Config
	Scheme  *runtime.Scheme
	Log     *slog.Logger
}

type api struct {
	Options
	writer writer
	// Limits that apply before a caller is authenticated; see unknown.go.
	unknown *unknownTokens
	// known are tokens that the API server accepted recently. The limits do not apply to them.
	known  *unknownTokens
	limits *reviewLimits
	places *semaphore.Weighted
}

// NewRouter serves the API.
func NewRouter(o Options) (http.Handler, error) {
	a, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	return a.router(), nil
}

func newAPI(o Options) (*api, error) {
	writer, err := newWriter(o.Cluster, o.Scheme)
	if err != nil {
		return nil, err
	}
	return &api{o, writer, newUnknownTokens(), newUnknownTokens(), newReviewLimits(), semaphore.NewWeighted(authenticating)}, nil
}

func (a *api) router() http.Handler {
	r := chi.NewRouter()
	r.Use(a.recorded, a.recovered, within(requestTimeout))
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is nothing here: GET /v1/settings lists the settings")
	})
	r.Route("/v1/settings", func(r chi.Router) {
		r.Use(a.authenticate, atMost(concurrent))
		r.Handle("/", methods{http.MethodGet: a.list, http.MethodHead: a.list})
		r.Handle("/{name}", methods{http.MethodGet: a.get, http.MethodHead: a.get, http.MethodPut: a.put})
	})
	return r
}

package settingsapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
)

// caller is the user of a request.
type caller struct {
	names longhorn.Names
	// client has the caller's token.
	client client.Client
	// warnings of the API server and of the webhooks.
	warnings *collector
}

// caller returns the caller of a request. If the request is not complete, it answers the request.
func (a *api) caller(w http.ResponseWriter, r *http.Request) (c caller, ok bool) {
	token := bearerToken(r)
	if token == "" {
		refuseToken(w, `Bearer realm="fairlead"`, howToAuthenticate)
		return c, false
	}
	c.names, c.warnings = a.Names, &collector{}
	own := rest.CopyConfig(a.Cluster)
	own.BearerToken, own.WarningHandler = token, c.warnings
	var err error
	c.client, err = client.New(own, client.Options{
		Scheme: a.Scheme, Mapper: a.Mapper, FieldOwner: "fairlead-api", FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		a.Log.Error("building a client", "error", err)
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "internal error, see Fairlead's log")
	}
	return c, err == nil
}

// reader reads as the caller.
func (c caller) reader() *reads.Reader { return reads.NewReader(c.names, c.client, c.client) }

// anonymous has the API server's address and its CA, and no credentials. The clients of all callers share connections.
func anonymous(c *rest.Config) *rest.Config {
	c = rest.AnonymousClientConfig(c)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.QPS, c.RateLimiter = -1, nil // a client is for one request
	c.WarningHandler, c.WarningHandlerWithContext = nil, nil
	return c
}

// maxToken is the longest token, in bytes, that Fairlead forwards. Tokens in use are shorter.
const maxToken = 16 << 10

// bearerToken reads the token of the Authorization header; "" if there is none.
func bearerToken(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken || strings.ContainsAny(token, " \t") {
		return ""
	}
	return token
}

const howToAuthenticate = "send a token of the cluster as Authorization: Bearer <token>, such as one of kubectl create token"

func refuseToken(w http.ResponseWriter, challenge, message string) {
	w.Header().Set("WWW-Authenticate", challenge)
	refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, message)
}

// collector keeps warnings, each once.
type collector struct {
	sync.Mutex
	texts []string
}

// HandleWarningHeader is client-go's WarningHandler.
func (c *collector) HandleWarningHeader(code int, _, text string) {
	c.Lock()
	defer c.Unlock()
	if code == 299 && text != "" && !slices.Contains(c.texts, text) { // the API server sends no other code
		c.texts = append(c.texts, text)
	}
}

package settingsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// caller is the user who sent a request.
type caller struct {
	authenticationv1.UserInfo
	// token of the user. Fairlead sends it only to the API server.
	token string
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
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

// authenticate asks the API server for the user of the token. The place in the limit
// of token reviews is free again before the request itself is handled.
func (a *api) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := bearerToken(r)
		if token == "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead"`)
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, howToAuthenticate)
			return
		}
		if a.unknown.has(token) {
			refuseUnknown(w)
			return
		}
		user, ok, err := a.whoseLimited(r, token)
		switch {
		case errors.Is(err, errTooMany):
			tooMany(w)
		case err != nil:
			a.Log.Error("reviewing a token", "error", err)
			refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the API server could not be asked whose token this is; see Fairlead's log")
		case !ok:
			a.unknown.add(token)
			refuseUnknown(w)
		default:
			seen(r.Context()).user = user.Username
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{user, token})))
		}
	})
}

func refuseUnknown(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead", error="invalid_token"`)
	refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the API server does not know this token, or it has expired: "+howToAuthenticate)
}

var errTooMany = errors.New("too many tokens to review")

// whoseLimited is whose, limited in total and per address.
func (a *api) whoseLimited(r *http.Request, token string) (authenticationv1.UserInfo, bool, error) {
	if !a.places.TryAcquire(1) {
		return authenticationv1.UserInfo{}, false, errTooMany
	}
	defer a.places.Release(1)
	if !a.known.has(token) && !a.limits.allow(r) {
		return authenticationv1.UserInfo{}, false, errTooMany
	}
	user, ok, err := a.whose(r.Context(), token)
	if ok && err == nil {
		a.known.add(token) // a known token is still reviewed each time, since it may be revoked
	}
	return user, ok, err
}

func (a *api) whose(ctx context.Context, token string) (authenticationv1.UserInfo, bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := a.Tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, false, fmt.Errorf("creating a TokenReview: %w", err)
	}
	return review.Status.User, review.Status.Authenticated && review.Status.User.Username != "", nil
}

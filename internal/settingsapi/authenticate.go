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

// caller is who sent a request.
type caller struct {
	authenticationv1.UserInfo
	// token is theirs. It goes to the API server and nowhere else.
	token string
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// maxToken is longer than any token in use, and short enough to be sent on.
const maxToken = 16 << 10

// bearerToken reads the token of an Authorization header; "" is none.
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

// authenticate has the API server say whose token it is. The place that this takes
// is left before the request is worked on.
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

// whoseLimited is whose, for so many at once and so many of one address.
func (a *api) whoseLimited(r *http.Request, token string) (authenticationv1.UserInfo, bool, error) {
	if !a.places.Take("", 1) {
		return authenticationv1.UserInfo{}, false, errTooMany
	}
	defer a.places.Give("", 1)
	if !a.known.has(token) && !a.limits.allow(r) {
		return authenticationv1.UserInfo{}, false, errTooMany
	}
	user, ok, err := a.whose(r.Context(), token)
	if ok && err == nil {
		a.known.add(token) // still reviewed each time: it may be withdrawn
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

package settingsapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// tokensReviewed counts the TokenReviews.
func (f *fixture) tokensReviewed() int {
	f.Lock()
	defer f.Unlock()
	return f.tokenReviews
}

var garbage = []string{"Authorization", "Bearer garbage"}

// from sends a request with a token from the address 192.0.2.<host>.
func (f *fixture) from(host int, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", one, nil)
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", host)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// Regression: each request with an unknown token cost a TokenReview.
func TestUnknownTokenIsReviewedOnceInAWhile(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.api.unknown.now = func() time.Time { return now }
	reviewed := func(want int, when string) {
		t.Helper()
		n := f.tokensReviewed()
		must.Check(t, n == want, "%d reviews %s, want %d", n, when, want)
	}
	for range 3 {
		w := f.do("GET", one, "", garbage...)
		must.Check(t, w.Code == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") != "", "got %d", w.Code)
	}
	reviewed(1, "at first")
	now = now.Add(unknownFor)
	f.do("GET", one, "", garbage...)
	reviewed(2, "after a while")
	f.do("GET", one, "")
	f.do("GET", one, "")
	reviewed(4, "of a known token, which may be withdrawn at any time")
}

func TestReviewsPerAddressAreLimited(t *testing.T) {
	f := newFixture(t)
	refused := 0
	for i := range 3 * reviewBurst {
		if w := f.do("GET", one, "", "Authorization", fmt.Sprintf("Bearer garbage-%d", i)); w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	n := f.tokensReviewed()
	must.Check(t, refused != 0 && n+refused == 3*reviewBurst, "%d reviews, %d refused", n, refused)
	must.Check(t, f.from(99, aliceToken).Code != http.StatusTooManyRequests, "another address is refused")
}

// Regression: a caller with a valid token was limited like a caller without one, and locked out by
// whoever tried tokens from the same address.
func TestKnownCallerIsNotLimitedByUnknownTokens(t *testing.T) {
	f := newFixture(t)
	for i := range 3 * reviewBurst {
		w := f.do("GET", one, "")
		must.True(t, w.Code != http.StatusTooManyRequests, "request %d is refused", i)
		f.do("GET", one, "", "Authorization", fmt.Sprintf("Bearer garbage-%d", i))
	}
}

// Regression: callers without a valid token took the places of callers with one.
func TestTokensUnderReviewTakeNoPlaceOfRequests(t *testing.T) {
	f := newFixture(t)
	f.do("GET", one, "", garbage...)
	release := make(chan struct{})
	f.onTokenReview = func(token string) {
		if token != aliceToken {
			<-release
		}
	}
	var waiting sync.WaitGroup
	ask := func(i int) *httptest.ResponseRecorder { return f.from(i, fmt.Sprintf("garbage-%d", i)) }
	for i := range authenticating - 1 {
		waiting.Go(func() { ask(i) })
	}
	for f.tokensReviewed() < authenticating {
		time.Sleep(time.Millisecond)
	}
	must.Equal(t, f.do("GET", one, "").Code, http.StatusOK, "alice")
	waiting.Go(func() { ask(100) })
	for f.tokensReviewed() < authenticating+2 {
		time.Sleep(time.Millisecond)
	}
	if w := ask(101); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: got %d", w.Code)
	}
	// A request without a review needs no place.
	must.Equal(t, f.do("GET", one, "", garbage...).Code, http.StatusUnauthorized, "an unknown token")
	must.True(t, !f.api.places.TryAcquire(1), "a place is free")
	close(release)
	waiting.Wait()
	must.True(t, f.api.places.TryAcquire(authenticating), "a place is not given back")
}

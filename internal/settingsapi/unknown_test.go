package settingsapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// tokensReviewed is how many tokens the API server was asked about.
func (f *fixture) tokensReviewed() int {
	f.Lock()
	defer f.Unlock()
	return f.tokenReviews
}

// Regression: each request with a token that nobody knows cost a TokenReview.
func TestAnUnknownTokenIsAskedAboutOnceInAWhile(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.api.unknown.now = func() time.Time { return now }
	garbage := []string{"Authorization", "Bearer garbage"}
	for range 3 {
		if w := f.do("GET", one, "", garbage...); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("got %d", w.Code)
		}
	}
	if n := f.tokensReviewed(); n != 1 {
		t.Errorf("%d reviews", n)
	}
	now = now.Add(unknownFor)
	f.do("GET", one, "", garbage...)
	if n := f.tokensReviewed(); n != 2 {
		t.Errorf("%d reviews after a while", n)
	}
	f.do("GET", one, "")
	f.do("GET", one, "")
	if n := f.tokensReviewed(); n != 4 {
		t.Errorf("%d reviews: a token that is known may be withdrawn at any time", n)
	}
}

// What the API server could not be asked about is not unknown.
func TestATokenIsNotUnknownForAnError(t *testing.T) {
	f := newFixture(t)
	f.broken = true
	f.do("GET", one, "")
	f.broken = false
	if w := f.do("GET", one, ""); w.Code == http.StatusUnauthorized {
		t.Errorf("got %d", w.Code)
	}
}

// One address that tries token after token is stopped, others are not.
func TestOneAddressDoesNotUseUpTheReviews(t *testing.T) {
	f := newFixture(t)
	refused := 0
	for i := range 3 * reviewBurst {
		if w := f.do("GET", one, "", "Authorization", fmt.Sprintf("Bearer garbage-%d", i)); w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if n := f.tokensReviewed(); refused == 0 || n+refused != 3*reviewBurst {
		t.Errorf("%d reviews, %d refused", n, refused)
	}
	r := httptest.NewRequest("GET", one, nil)
	r.RemoteAddr = "192.0.2.99:1234"
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	w := httptest.NewRecorder()
	if f.handler.ServeHTTP(w, r); w.Code == http.StatusTooManyRequests {
		t.Errorf("another address: got %d", w.Code)
	}
}

// Regression: who has a token of the cluster was limited as if he had none, and shut
// out by whoever tries tokens from the same address.
func TestAKnownCallerIsNotLimitedAsAnUnknownOne(t *testing.T) {
	f := newFixture(t)
	for i := range 3 * reviewBurst {
		if w := f.do("GET", one, ""); w.Code == http.StatusTooManyRequests {
			t.Fatalf("request %d is refused", i)
		}
		f.do("GET", one, "", "Authorization", fmt.Sprintf("Bearer garbage-%d", i))
	}
}

// Regression: callers without a token of the cluster took the places of those with one.
func TestTokensUnderReviewTakeNoPlaceOfRequests(t *testing.T) {
	f := newFixture(t)
	garbage := []string{"Authorization", "Bearer garbage"}
	f.do("GET", one, "", garbage...)
	release := make(chan struct{})
	f.onTokenReview = func(token string) {
		if token != aliceToken {
			<-release
		}
	}
	var waiting sync.WaitGroup
	ask := func(i int) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", one, nil)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", i)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer garbage-%d", i))
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w
	}
	for i := range authenticating - 1 {
		waiting.Go(func() { ask(i) })
	}
	for f.tokensReviewed() < authenticating {
		time.Sleep(time.Millisecond)
	}
	if w := f.do("GET", one, ""); w.Code != http.StatusOK {
		t.Errorf("alice: got %d %s", w.Code, w.Body)
	}
	waiting.Go(func() { ask(100) })
	for f.tokensReviewed() < authenticating+2 {
		time.Sleep(time.Millisecond)
	}
	if w := ask(101); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: got %d", w.Code)
	}
	// What needs no review needs no place of either kind.
	if w := f.do("GET", one, "", garbage...); w.Code != http.StatusUnauthorized {
		t.Errorf("an unknown token: got %d", w.Code)
	}
	if n := f.api.places.Used(); n != authenticating {
		t.Errorf("%d of %d places", n, authenticating)
	}
	close(release)
	waiting.Wait()
	if n := f.api.places.Used(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

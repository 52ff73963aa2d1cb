package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// defaultLifetime of a token where an answer does not say (go-api, model_user_session_all_of_session.go).
	defaultLifetime = 5 * time.Minute
	// renewAgain is how long a token that could not be refreshed is used before the next try.
	renewAgain = 5 * time.Second
)

// session is the token, which all requests share.
type session struct {
	// turn is taken by whoever logs in or refreshes; others wait for it only if there
	// is no valid token (the released manager's loop waited for each: Start).
	turn chan struct{}
	mu   sync.Mutex
	held token
}

type token struct {
	text string
	// renew is when it should be refreshed, expires when it is of no use any more.
	renew, expires time.Time
}

func newSession() session { return session{turn: make(chan struct{}, 1)} }

func (s *session) current() token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

func (s *session) set(t token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = t
}

// forget a token that the control plane does not accept, unless there is another already.
func (s *session) forget(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.text == text {
		s.held = token{}
	}
}

// token returns one that is valid, and logs in or refreshes if need be.
func (c *Client) token(ctx context.Context) (string, error) {
	now := c.options.Clock.Now()
	held := c.session.current()
	if held.text != "" && now.Before(held.renew) {
		return held.text, nil
	}
	if held.text != "" && now.Before(held.expires) {
		select {
		case c.session.turn <- struct{}{}:
		default:
			return held.text, nil // another caller refreshes it
		}
	} else {
		select {
		case c.session.turn <- struct{}{}:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the login to Ondat's API: %w", ctx.Err())
		}
	}
	defer func() { <-c.session.turn }()
	if held = c.session.current(); held.text != "" && now.Before(held.renew) {
		return held.text, nil // while this waited
	}
	if held.text != "" && now.Before(held.expires) {
		return c.refresh(ctx, held)
	}
	return c.login(ctx)
}

// refresh asks for a new token. While it fails, the old one serves as long as it is valid.
func (c *Client) refresh(ctx context.Context, held token) (string, error) {
	began := time.Now()
	t, err := c.authenticate(ctx, request{
		doing: "refreshing the token", method: http.MethodPost, path: []string{"auth", "refresh"}, timeout: c.options.LoginTimeout,
	}, held.text)
	c.metrics.helper(helperRefresh, began, time.Now(), err)
	switch {
	case err == nil:
		return t, nil
	case IsCode(err, http.StatusUnauthorized):
		c.session.forget(held.text)
		return c.login(ctx)
	}
	held.renew = c.options.Clock.Now().Add(renewAgain)
	c.session.set(held)
	return held.text, nil
}

func (c *Client) login(ctx context.Context) (string, error) {
	began := time.Now()
	l, err := c.options.credentials()
	t := ""
	if err == nil {
		t, err = c.authenticate(ctx, request{
			doing: "logging in", method: http.MethodPost, path: []string{"auth", "login"}, body: l, timeout: c.options.LoginTimeout, secrets: []string{l.Password},
		}, "")
	}
	c.metrics.helper(helperSetup, began, time.Now(), err)
	return t, err
}

// authenticate sends a login or a refresh and keeps the token of the answer.
func (c *Client) authenticate(ctx context.Context, r request, with string) (string, error) {
	asked := c.options.Clock.Now()
	var answer userSession
	header, err := c.send(ctx, r, with, &answer)
	if err != nil {
		return "", err
	}
	text := bearer(header.Get("Authorization"))
	if text == "" {
		text = strings.TrimSpace(answer.Session.Token)
	}
	if text == "" {
		return "", fmt.Errorf("%s at Ondat's API: the answer has no token: what answers at %s %w", r.doing, c.base.Host, errAnswer)
	}
	life := lifetime(answer.Session.ExpiresInSeconds, header)
	c.session.set(token{text: text, renew: asked.Add(min(c.options.Refresh, life*2/3)), expires: asked.Add(life)})
	return text, nil
}

// bearer is the token of a header, with or without the word Bearer. The released
// manager ended on one without a blank (client.go).
func bearer(header string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(header), " ")
	switch {
	case ok && strings.EqualFold(scheme, "bearer"):
		return strings.TrimSpace(rest)
	case ok, strings.EqualFold(scheme, "bearer"):
		return ""
	}
	return scheme
}

// lifetime of a token: the body has it in both answers, while login and refresh name
// the header differently (openapi.yaml).
func lifetime(seconds uint64, header http.Header) time.Duration {
	for _, name := range []string{"Authorization-Expires-Seconds", "Authorization-Expires-In"} {
		if seconds == 0 {
			seconds, _ = strconv.ParseUint(strings.TrimSuffix(header.Get(name), "s"), 10, 32)
		}
	}
	if seconds == 0 {
		return defaultLifetime
	}
	return time.Duration(min(seconds, 7*24*3600)) * time.Second
}

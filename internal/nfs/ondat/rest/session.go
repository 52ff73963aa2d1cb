package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// defaultLifetime of a token where an answer does not say (go-api, model_user_session_all_of_session.go).
	defaultLifetime = 5 * time.Minute
	// renewAgain is how long a token that could not be renewed is used before the next try.
	renewAgain = 5 * time.Second
)

// session is the token, which all requests share.
type session struct {
	// turn is taken by the request that logs in. Others wait for it only if there is no valid token (the released
	// manager's loop waited for each: Start).
	turn chan struct{}
	mu   sync.Mutex
	held token
}

type token struct {
	text string
	// renew is when to log in again, expires when the token is of no use any more.
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

// token returns a valid token, and logs in if the token is old. While that fails, the old token serves until it expires.
func (c *Client) token(ctx context.Context) (string, error) {
	now := c.options.Clock.Now()
	if held := c.session.current(); now.Before(held.renew) {
		return held.text, nil
	} else if now.Before(held.expires) {
		select {
		case c.session.turn <- struct{}{}:
		default:
			return held.text, nil // another request logs in
		}
	} else {
		select {
		case c.session.turn <- struct{}{}:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the login to Ondat's API: %w", ctx.Err())
		}
	}
	defer func() { <-c.session.turn }()
	held := c.session.current()
	if now.Before(held.renew) {
		return held.text, nil // another request has logged in meanwhile
	}
	text, err := c.login(ctx)
	if err != nil && now.Before(held.expires) {
		held.renew = c.options.Clock.Now().Add(renewAgain) // a login may hang for long
		c.session.set(held)
		return held.text, nil
	}
	return text, err
}

// login logs in and keeps the token of the answer, which is in a header, in the body, or in both.
func (c *Client) login(ctx context.Context) (text string, err error) {
	defer c.metrics.helper(helperSetup)(&err)
	l, err := c.options.credentials()
	if err != nil {
		return "", err
	}
	const doing = "logging in"
	asked := c.options.Clock.Now()
	var answer userSession
	header, err := c.send(ctx, request{
		doing: doing, method: http.MethodPost, path: []string{"auth", "login"}, body: l, timeout: c.options.LoginTimeout, secrets: []string{l.Password},
	}, "", &answer)
	if err != nil {
		return "", err
	}
	if text = bearer(header.Get("Authorization")); text == "" {
		text = strings.TrimSpace(answer.Session.Token)
	}
	if text == "" {
		return "", fmt.Errorf("%s at Ondat's API: the answer has no token: what answers at %s %w", doing, c.base.Host, errAnswer)
	}
	life := lifetime(answer.Session.ExpiresInSeconds)
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

func lifetime(seconds uint64) time.Duration {
	if seconds == 0 {
		return defaultLifetime
	}
	return time.Duration(min(seconds, 7*24*3600)) * time.Second
}

package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// defaultLifetime of a token where an answer does not say (go-api, model_user_session_all_of_session.go).
	defaultLifetime = 5 * time.Minute
	// renewAgain is how long a token that could not be renewed is used before the next try.
	renewAgain = 5 * time.Second
)

// token is what all requests share. The zero token has expired.
type token struct {
	text string
	// renew is when to log in again, expires when the token is of no use any more.
	renew, expires time.Time
}

// token returns a valid token, and logs in if the token is old. While that fails, the old token serves until it expires.
// Requests wait for another's login only if there is no valid token (the released manager's loop waited for each: Start).
func (c *Client) token(ctx context.Context) (string, error) {
	now := c.options.Clock.Now()
	switch held := c.held.Load(); {
	case now.Before(held.renew):
		return held.text, nil
	case !now.Before(held.expires):
		if err := c.turn.Acquire(ctx, 1); err != nil {
			return "", fmt.Errorf("waiting for the login to Ondat's API: %w", err)
		}
	case !c.turn.TryAcquire(1):
		return held.text, nil // another request logs in
	}
	defer c.turn.Release(1)
	held := c.held.Load()
	if now.Before(held.renew) {
		return held.text, nil // another request has logged in meanwhile
	}
	text, err := c.login(ctx)
	if err != nil && now.Before(held.expires) {
		c.held.Store(&token{held.text, c.options.Clock.Now().Add(renewAgain), held.expires}) // a login may hang for long
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
		doing: doing, method: http.MethodPost, path: []string{"auth", "login"}, body: l, timeout: 2 * c.options.Timeout, secrets: []string{l.Password},
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
	c.held.Store(&token{text, asked.Add(min(c.options.Refresh, life*2/3)), asked.Add(life)})
	return text, nil
}

// bearer is the token of a header, with or without the word Bearer. The released
// manager ended on one without a blank (client.go).
func bearer(header string) string {
	switch words := strings.Fields(header); {
	case len(words) == 1 && !strings.EqualFold(words[0], "bearer"):
		return words[0]
	case len(words) == 2 && strings.EqualFold(words[0], "bearer"):
		return words[1]
	}
	return ""
}

func lifetime(seconds uint64) time.Duration {
	if seconds == 0 {
		return defaultLifetime
	}
	return time.Duration(min(seconds, 7*24*3600)) * time.Second
}

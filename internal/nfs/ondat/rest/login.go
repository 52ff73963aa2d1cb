package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// credentials are go-api's AuthUserData.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// userSession is go-api's UserSession; only what is read.
type userSession struct {
	Session struct {
		Token string `json:"token"`
	} `json:"session"`
}

// login returns a token that is not the expired one. It logs in if there is none:
// first, and when the control plane does not know the last one any more.
func (c *Client) login(ctx context.Context, expired string) (token string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != expired {
		return c.token, nil
	}
	defer c.metrics.helper("setup")(&err)
	user, err := c.credentials()
	if err != nil {
		return "", err
	}
	var answer userSession
	r := request{doing: "logging in", method: http.MethodPost, path: []string{"auth", "login"}, body: user, secret: user.Password}
	header, err := c.do(ctx, r, "", &answer)
	if err != nil {
		return "", err
	}
	// The token is in a header, in the body, or in both.
	words := strings.Fields(header.Get("Authorization"))
	if len(words) > 0 && strings.EqualFold(words[0], "Bearer") {
		words = words[1:]
	}
	if token = cmp.Or(strings.Join(words, " "), strings.TrimSpace(answer.Session.Token)); token == "" {
		return "", r.failed(c.wrongAnswer())
	}
	c.token = token
	return token, nil
}

// credentials are read at each login, so that a changed secret needs no restart.
func (c *Client) credentials() (user credentials, err error) {
	for file, value := range map[string]*string{"username": &user.Username, "password": &user.Password} {
		data, err := os.ReadFile(filepath.Join(c.secretPath, file))
		if err != nil {
			return user, fmt.Errorf("reading Ondat's credentials: %w: mount a Secret with the keys username and password there", err)
		}
		if *value = strings.TrimSpace(string(data)); *value == "" {
			return user, fmt.Errorf("reading Ondat's credentials: %s is empty", filepath.Join(c.secretPath, file))
		}
	}
	return user, nil
}

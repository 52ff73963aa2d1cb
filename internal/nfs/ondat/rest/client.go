package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Client of one control plane. It may be used by many goroutines.
type Client struct {
	options Options
	base    *url.URL
	http    *http.Client
	metrics *metrics
	session session
}

// New reads the options. It asks the control plane nothing.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	base, err := ParseEndpoint(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("ondat.apiEndpoint: %w", err)
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	m := newMetrics(o.Registry)
	return &Client{
		options: o, base: base, metrics: m, session: newSession(),
		http: &http.Client{
			Transport: m.around(transport),
			// A redirection could carry the token to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// request is one call of the API.
type request struct {
	doing, method string
	path          []string
	body          any
	timeout       time.Duration
	// secrets that no error may show, beside the token.
	secrets []string
}

// call sends a request with a token. If the control plane does not know the token
// any more, it logs in and sends the request once more.
func (c *Client) call(ctx context.Context, r request, answer any) error {
	token, err := c.token(ctx)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, r, token, answer)
	if !IsCode(err, http.StatusUnauthorized) {
		return err
	}
	c.session.forget(token)
	counted := c.metrics.helper(helperReset)
	token, err = c.token(ctx)
	if counted(&err); err != nil {
		return err
	}
	_, err = c.send(ctx, r, token, answer)
	return err
}

// send sends a request once and reads the answer; nil drops it.
func (c *Client) send(ctx context.Context, r request, token string, answer any) (http.Header, error) {
	timeout := r.timeout
	if timeout == 0 {
		timeout = c.options.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s at Ondat's API: %w", r.doing, err)
		}
		body = bytes.NewReader(data)
	}
	escaped := make([]string, len(r.path))
	for i, p := range r.path {
		escaped[i] = url.PathEscape(p)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, c.base.JoinPath(escaped...).String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s at Ondat's API: %w", r.doing, err)
	}
	q.Header.Set("Accept", "application/json")
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%s at Ondat's API: %w: check ondat.apiEndpoint, and that the control plane runs", r.doing, cause(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s at Ondat's API: reading the answer: %w", r.doing, err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, refused(r.doing, resp.StatusCode, data, append(r.secrets, token)...)
	case len(data) > maxBody:
		return nil, fmt.Errorf("%s at Ondat's API: the answer is longer than %d MiB: what answers at %s %w", r.doing, maxBody>>20, c.base.Host, errAnswer)
	case answer == nil:
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return nil, fmt.Errorf("%s at Ondat's API: the answer is not what was asked for: what answers at %s %w", r.doing, c.base.Host, errAnswer)
	}
	return resp.Header, nil
}

// cause drops the URL that net/http puts before an error.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

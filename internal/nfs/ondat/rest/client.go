package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Client of one control plane. It may be used by many goroutines.
type Client struct {
	options Options
	base    *url.URL
	http    *http.Client
	metrics *metrics
	// turn is taken by the request that logs in.
	turn *semaphore.Weighted
	held atomic.Pointer[token]
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
	c := &Client{options: o, base: base, metrics: newMetrics(o.Registry), turn: semaphore.NewWeighted(1)}
	c.held.Store(&token{})
	c.http = &http.Client{
		Transport: c.metrics.around(transport),
		// A redirection could carry the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
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
	text, err := c.token(ctx)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, r, text, answer)
	if !IsCode(err, http.StatusUnauthorized) {
		return err
	}
	if held := c.held.Load(); held.text == text {
		c.held.CompareAndSwap(held, new(token)) // unless there is another already
	}
	counted := c.metrics.helper(helperReset)
	text, err = c.token(ctx)
	if counted(&err); err != nil {
		return err
	}
	_, err = c.send(ctx, r, text, answer)
	return err
}

// send sends a request once and reads the answer; nil drops it.
func (c *Client) send(ctx context.Context, r request, token string, answer any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, c.options.Timeout))
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
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL
	}
	if err != nil {
		return nil, fmt.Errorf("%s at Ondat's API: %w: check ondat.apiEndpoint, and that the control plane runs", r.doing, err)
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

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// call sends one review to a handler repeatedly. It reuses request and answer, so
// that only the handler's own cost counts.
type call struct {
	handler http.Handler
	review  []byte
	body    bytes.Reader
	request *http.Request
	answer  answer
}

// query is the API server's query: the webhook's timeout.
const query = "?timeout=5s"

func newCall(handler http.Handler, review []byte) (*call, error) {
	request, err := http.NewRequest(http.MethodPost, path+query, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = int64(len(review))
	return &call{handler: handler, review: review, request: request, answer: answer{header: http.Header{}}}, nil
}

var errNotAnswered = errors.New("the handler did not answer 200")

func (c *call) do() error {
	c.body.Reset(c.review)
	c.request.Body = io.NopCloser(&c.body)
	c.answer.reset()
	c.handler.ServeHTTP(&c.answer, c.request)
	if c.answer.status != http.StatusOK {
		return fmt.Errorf("%w: %d: %s", errNotAnswered, c.answer.status, c.answer.body.String())
	}
	return nil
}

// answer is a minimal http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) reset() {
	clear(a.header)
	a.status = http.StatusOK
	a.body.Reset()
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

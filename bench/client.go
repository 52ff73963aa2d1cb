package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// child is a server in a separate process, and a client that calls it as the API
// server does: HTTP/1.1 over persistent TLS 1.3 connections.
type child struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	url     string
	client  *http.Client
	review  []byte
}

func startChild(side string, review []byte) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	c := &child{command: exec.Command(self), review: review}
	c.command.Env = append(os.Environ(), serveVariable+"="+side)
	c.command.Stderr = os.Stderr
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	c.output = bufio.NewReader(output)
	if c.input, err = c.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the server by closing its input.
func (c *child) stop() error {
	_ = c.input.Close()
	return c.command.Wait()
}

func (c *child) connect() error {
	line, err := c.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("waiting for the server: %w", err)
	}
	var hello greeting
	if err := json.Unmarshal(line, &hello); err != nil {
		return fmt.Errorf("waiting for the server: %w", err)
	}
	served, err := x509.ParseCertificate(hello.Certificate)
	if err != nil {
		return fmt.Errorf("reading the server's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(served)
	c.url = "https://" + hello.Address + path + query
	c.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}},
		MaxIdleConnsPerHost: many,
	}}
	return nil
}

// cpuTime asks the server for its CPU time. The server counts its own time, with
// the resolution of the kernel's accounting.
func (c *child) cpuTime() (time.Duration, error) {
	if _, err := fmt.Fprintln(c.input); err != nil {
		return 0, fmt.Errorf("asking the server for its CPU time: %w", err)
	}
	line, err := c.output.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("reading the server's CPU time: %w", err)
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Duration(nanoseconds), err
}

func (c *child) send() error {
	request, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(c.review))
	if err != nil {
		return fmt.Errorf("building the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("calling the server: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 || response.TLS.Version != tls.VersionTLS13 {
		return fmt.Errorf("%w over HTTP/1.1 and TLS 1.3: %s over %s", errNotAnswered, response.Status, response.Proto)
	}
	return nil
}

// overTLS measures the server's CPU time of the given number of concurrent calls.
func (c *child) overTLS(calls, atATime int) sampler {
	return func() (time.Duration, error) {
		before, err := c.cpuTime()
		if err != nil {
			return 0, err
		}
		var group errgroup.Group
		for range atATime {
			group.Go(func() error {
				for range calls / atATime {
					if err := c.send(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		after, err := c.cpuTime()
		return (after - before) / time.Duration(calls), err
	}
}

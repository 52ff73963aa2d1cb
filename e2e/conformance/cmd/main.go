// Conformance checks an admission webhook from outside. It ends with 1 if a requirement is not met.
//
//	go run ./e2e/conformance/cmd -url https://localhost:9443/mutate -ca ca.pem -request request.json
//	go run ./e2e/conformance/cmd ... -while 'kubectl -n my rollout restart deployment/webhook && kubectl -n my rollout status deployment/webhook'
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fairlead-io/fairlead/e2e/conformance"
	"github.com/fairlead-io/fairlead/internal/cli"
)

type options struct {
	url, ca, name, certificate, key, request, while string
	senders, pid                                    int
	insecure                                        bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "URL of the webhook, as in its configuration; kubectl port-forward makes one of a Service")
	flag.StringVar(&o.ca, "ca", "", "file with the CA bundle of the configuration, PEM")
	flag.StringVar(&o.name, "server-name", "", "name in the webhook's certificate, as webhook.my-namespace.svc, if the URL has another")
	flag.BoolVar(&o.insecure, "insecure", false, "do not check the webhook's certificate")
	flag.StringVar(&o.certificate, "cert", "", "client certificate, PEM, if the webhook asks for one")
	flag.StringVar(&o.key, "key", "", "its private key, PEM")
	flag.StringVar(&o.request, "request", "", "file with an AdmissionRequest or AdmissionReview v1 that the webhook decides on, JSON")
	flag.StringVar(&o.while, "while", "", "shell command, such as a rolling restart: requests are sent while it runs, and lost ones are counted")
	flag.IntVar(&o.senders, "senders", 4, "requests at a time with -while and -pid")
	flag.IntVar(&o.pid, "pid", 0, "process of the webhook on this machine: prints its CPU time per review (Linux)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := o.run(ctx, cli.Terminal{Writer: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

var (
	errFlags = errors.New("-url and -request are needed; -h explains them")
	errCA    = errors.New("has no PEM certificate")
)

// callTimeout is above the longest timeout of a webhook (30s).
const callTimeout = 35 * time.Second

func (o options) run(ctx context.Context, out io.Writer) (ok bool, err error) {
	w, err := o.webhook()
	if err != nil {
		return false, err
	}
	results := conformance.Run(ctx, w)
	if err := conformance.WriteTable(out, results); err != nil {
		return false, err
	}
	ok = conformance.Passed(results)
	if o.pid != 0 {
		if err := o.cost(ctx, w, out); err != nil {
			return false, err
		}
	}
	if o.while != "" {
		load, err := conformance.During(ctx, w, o.senders, func(ctx context.Context) error {
			command := exec.CommandContext(ctx, "sh", "-c", o.while)
			command.Stdout, command.Stderr = os.Stderr, os.Stderr
			return command.Run()
		})
		if err != nil {
			return false, fmt.Errorf("%s: %w", o.while, err)
		}
		fmt.Fprintf(out, "\nWhile the command ran: %s\n", load)
		ok = ok && load.OK()
	}
	return ok, nil
}

// cost prints the CPU time per review, over some seconds.
func (o options) cost(ctx context.Context, w conformance.Webhook, out io.Writer) error {
	before, err := conformance.CPU(o.pid)
	if err != nil {
		return err
	}
	load, err := conformance.During(ctx, w, o.senders, func(context.Context) error {
		time.Sleep(5 * time.Second)
		return nil
	})
	if err != nil {
		return err
	}
	after, err := conformance.CPU(o.pid)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nCost: %s of CPU per review; %s\n", (after-before).Round(time.Millisecond)/time.Duration(max(load.Sent, 1)), load)
	return nil
}

func (o options) webhook() (conformance.Webhook, error) {
	var w conformance.Webhook
	if o.url == "" || o.request == "" {
		return w, errFlags
	}
	config := &tls.Config{ServerName: o.name, InsecureSkipVerify: o.insecure} // #nosec G402: asked for by a flag
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return w, fmt.Errorf("-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return w, fmt.Errorf("-ca: %s %w", o.ca, errCA)
		}
	}
	if o.certificate != "" {
		pair, err := tls.LoadX509KeyPair(o.certificate, o.key)
		if err != nil {
			return w, fmt.Errorf("-cert and -key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	request, err := load(o.request)
	if err != nil {
		return w, fmt.Errorf("-request: %w", err)
	}
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 200}}
	return conformance.Webhook{URL: o.url, Client: client, Request: request}, nil
}

// load reads an AdmissionRequest, alone or in its review.
func load(file string) (*admissionv1.AdmissionRequest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if review.Request != nil {
		return review.Request, nil
	}
	var request admissionv1.AdmissionRequest
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return &request, nil
}

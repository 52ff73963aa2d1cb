package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/fairlead-io/fairlead/webhook/admission"
)

// serveVariable is the environment variable that names the side a child process serves.
const serveVariable = "FAIRLEAD_BENCH_SERVE"

// greeting is the first line that a child writes.
type greeting struct {
	Address     string
	Certificate []byte
}

// serve runs in a child process: it serves one side over TLS. Both sides use Fairlead's
// server, so that only the handlers differ. It answers each input line with its CPU
// time in nanoseconds. It ends with its input, so that it never outlives its parent.
func serve(side string) error {
	handler, err := newHandler(side, network)
	if err != nil {
		return err
	}
	source, err := newCertificate()
	if err != nil {
		return err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	server := &admission.Server{Address: address, Source: source, Handler: handler, Log: slog.New(slog.DiscardHandler)}
	go func() {
		if err := server.Start(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()

	for listens := false; !listens; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			listens = true
			_ = c.Close()
		}
	}
	hello, err := json.Marshal(greeting{Address: address, Certificate: source.pair.Certificate[0]})
	if err != nil {
		return fmt.Errorf("writing the greeting: %w", err)
	}
	return report(os.Stdin, os.Stdout, hello)
}

// report greets, then answers each line with the CPU time.
func report(in io.Reader, out io.Writer, hello []byte) error {
	fmt.Fprintf(out, "%s\n", hello)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		used, err := cpuTime()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, used.Nanoseconds())
	}
	return lines.Err()
}

// certificate is a certs.Source with one certificate, created at start.
type certificate struct{ pair tls.Certificate }

func (c *certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &c.pair, nil
}
func (c *certificate) Start(context.Context) error { return nil }
func (c *certificate) Healthy() bool               { return true }

func newCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

package cephclients

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

const (
	// askTimeout is longer than the server's timeout, so that the server's own error arrives.
	askTimeout = 17 * time.Second
	maxAnswer  = 1 << 20
)

// Ask sends requests to the server at url, by the certificates in a directory.
func Ask(url, directory string) func(context.Context, cephcli.Request) (cephcli.Answer, error) {
	return func(ctx context.Context, request cephcli.Request) (answer cephcli.Answer, err error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		certificates, ca, err := readCertificates(directory)
		if err != nil {
			return answer, err
		}
		body, err := json.Marshal(request)
		if err != nil {
			return answer, fmt.Errorf("writing the request: %w", err)
		}
		post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return answer, fmt.Errorf("writing the request: %w", err)
		}
		// Each request has a connection of its own: they are rare, and certificates are replaced.
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: certificates, RootCAs: ca}}
		response, err := transport.RoundTrip(post)
		if err != nil {
			return answer, fmt.Errorf("asking %s: %w", url, err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %.200s", response.Status, data)
		} else if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		if err != nil {
			err = fmt.Errorf("asking %s: %w", url, err)
		}
		return answer, err
	}
}

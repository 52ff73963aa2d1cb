package beside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// restPort is where the manager serves its REST API.
const restPort = "9500"

// call asks Longhorn's REST API, as its user interface and its CSI driver do.
func (m *Manager) call(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("asking Longhorn for %s: %w", path, err)
		}
		sent = bytes.NewReader(data)
	}
	url := fmt.Sprintf("http://%s/v1/%s", net.JoinHostPort(m.pod.Status.PodIP, restPort), path)
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return fmt.Errorf("asking Longhorn for %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking Longhorn for %s: %w", path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("asking Longhorn for %s: %w", path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("asking Longhorn for %s: %w", path, errors.New(response.Status+": "+string(data)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}

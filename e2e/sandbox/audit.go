package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Request that Fairlead made, as the API server recorded it.
type Request struct {
	// User is the service account, as the API server names it.
	User string
	// Verb is one of the API's: get, list, watch, create, update, patch, delete.
	Verb string
	// Resource has its subresource: pods/eviction.
	Resource string
}

// ReadAudit returns the requests that Fairlead made since the start, in the
// order in which they were answered.
func (s *Sandbox) ReadAudit() ([]Request, error) {
	file, err := os.Open(filepath.Join(s.State.LogDir, "audit.log"))
	if err != nil {
		return nil, fmt.Errorf("opening the API server's record: %w", err)
	}
	defer file.Close()
	return parseAudit(file)
}

func parseAudit(in io.Reader) ([]Request, error) {
	var requests []Request
	seen := map[string]bool{}
	for decoder := json.NewDecoder(in); ; {
		var event struct {
			AuditID   string
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		err := decoder.Decode(&event)
		// The last line may be half written.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the API server's record: %w", err)
		}
		// A watch is recorded when it begins and once more when it ends.
		if seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		resource := event.ObjectRef.Resource
		if sub := event.ObjectRef.Subresource; sub != "" {
			resource += "/" + sub
		}
		requests = append(requests, Request{User: event.User.Username, Verb: event.Verb, Resource: resource})
	}
}

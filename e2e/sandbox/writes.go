package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Write is a change of an object that was asked for, as the API server recorded it.
type Write struct {
	// At is when the API server had answered.
	At time.Time
	// User is who asked, as the API server names it; Agent is the program.
	User, Agent string
	// Verb is one of create, update, patch, delete, deletecollection.
	Verb string
	// Resource has its subresource: pods/eviction. Group is its API group.
	Group, Resource, Namespace, Name string
	// Code is the HTTP status.
	Code int
	// Request and Response are bodies, where the record has them.
	Request, Response json.RawMessage
	// Message says why it was refused.
	Message string
	// Changed tells whether the object became another by it.
	Changed bool
	// Annotations are the API server's, such as what each webhook has changed.
	Annotations map[string]string
}

// String is short, for messages.
func (w Write) String() string {
	text := fmt.Sprintf("%s %s %s %s/%s → %d", w.At.Format("15:04:05.000"), w.Writer(), w.Verb, w.Resource, w.Name, w.Code)
	if !w.Changed {
		text += " (no change)"
	}
	return text
}

// Writer is who wrote, in short: the name of a service account, or the user's.
func (w Write) Writer() string { return w.User[strings.LastIndex(w.User, ":")+1:] }

// Object is what was written, without a subresource: volumes/pvc-1.
func (w Write) Object() string {
	resource, _, _ := strings.Cut(w.Resource, "/")
	return resource + "/" + w.Name
}

// record is what was read of the API server's record.
type record struct {
	mu sync.Mutex
	// offset of what is not read yet.
	offset   int64
	writes   []Write
	versions map[string]string // of objects, as last answered
}

// ReadWrites returns all writes since the start that the API server has answered, in
// the order of its answers; with Options.Audit, all requests of Fairlead. Dry runs are left out.
// Callers must not change the slice.
func (s *Sandbox) ReadWrites() ([]Write, error) {
	file, err := os.Open(filepath.Join(s.State.LogDir, "audit.log"))
	if err != nil {
		return nil, fmt.Errorf("opening the API server's record: %w", err)
	}
	defer file.Close()
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.read(file)
}

// read parses what was appended since the last time.
func (r *record) read(in io.ReadSeeker) ([]Write, error) {
	if _, err := in.Seek(r.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the API server's record: %w", err)
	}
	if r.versions == nil {
		r.versions = map[string]string{}
	}
	start := r.offset
	for decoder := json.NewDecoder(in); ; r.offset = start + decoder.InputOffset() {
		var event auditEvent
		err := decoder.Decode(&event)
		// The last line may be half written.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return slices.Clip(r.writes), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the API server's record: %w", err)
		}
		// A watch is recorded when it begins and once more when it ends.
		ended := event.Verb == "watch" && event.Stage == "ResponseComplete"
		if !ended && !strings.Contains(event.RequestURI, "dryRun=") {
			r.writes = append(r.writes, event.write(r.versions))
		}
	}
}

// auditEvent is what is read of an event of the record.
type auditEvent struct {
	StageTimestamp time.Time
	Verb, Stage    string
	UserAgent      string
	User           struct{ Username string }
	// ImpersonatedUser is whom the user asked for, if it is another.
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
	RequestObject, ResponseObject json.RawMessage
	RequestURI                    string
	Annotations                   map[string]string
}

func (e auditEvent) write(versions map[string]string) Write {
	w := Write{
		At: e.StageTimestamp, User: cmp.Or(e.ImpersonatedUser.Username, e.User.Username), Agent: e.UserAgent, Verb: e.Verb, Code: e.ResponseStatus.Code,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Request: e.RequestObject, Response: e.ResponseObject, Message: e.ResponseStatus.Message, Annotations: e.Annotations,
	}
	if e.ObjectRef.Subresource != "" {
		w.Resource += "/" + e.ObjectRef.Subresource
	}
	var answer struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	_ = json.Unmarshal(e.ResponseObject, &answer) // a Status has none of it
	if w.Name == "" {
		w.Name = answer.Metadata.Name // the API server made it up
	}
	version, key := answer.Metadata.ResourceVersion, w.Group+"/"+w.Namespace+"/"+w.Object()
	w.Changed = w.Code < 300 && (version == "" || version != versions[key])
	if version != "" {
		versions[key] = version
	}
	return w
}

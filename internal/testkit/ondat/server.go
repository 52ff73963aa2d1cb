package ondat

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// Server of Ondat's API. Its methods change the cluster as Ondat's other parts do:
// CSI requests, failovers.
type Server struct {
	// Username and Password that a login needs.
	Username, Password string
	// Lifetime of a token. Default 5 minutes.
	Lifetime time.Duration

	mu         sync.Mutex
	changes    int
	namespaces map[string]Namespace
	volumes    map[string]Volume
	sessions   map[string]time.Time
	faults     []Fault
	requests   []string
	before     func(*http.Request)
}

// Fault is an answer in place of the right one.
type Fault struct {
	// Method and Path that it meets; an empty one meets all. Path is what follows /v2.
	Method, Path string
	// Status and Body of the answer.
	Status int
	Body   string
	// Times that it happens; 0: always.
	Times int
}

// New is a server with one namespace, default, and no volumes.
func New() *Server {
	s := &Server{
		Username: "storageos", Password: "a good password", Lifetime: 5 * time.Minute,
		namespaces: map[string]Namespace{}, volumes: map[string]Volume{}, sessions: map[string]time.Time{},
	}
	s.AddNamespace("default-id", "default")
	return s
}

// Start serves on a loopback address. Close what is returned.
func (s *Server) Start() *httptest.Server { return httptest.NewServer(s.Handler()) }

// version is a new one, of the form that go-api describes: opaque, at most 30 characters.
func (s *Server) version() string {
	s.changes++
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "version-%d", s.changes))
}

// AddNamespace adds a namespace.
func (s *Server) AddNamespace(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	s.namespaces[id] = Namespace{ID: id, Name: name, CreatedAt: now, UpdatedAt: now, Version: s.version()}
}

// DeleteNamespace deletes a namespace and its volumes.
func (s *Server) DeleteNamespace(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.namespaces, id)
	maps.DeleteFunc(s.volumes, func(_ string, v Volume) bool { return v.NamespaceID == id })
}

// Provision creates a volume as CSI CreateVolume does: not attached, with the labels
// of the external provisioner.
func (s *Server) Provision(namespaceID, id, pv, pvc, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	s.volumes[id] = Volume{
		ID: id, Name: pv, NamespaceID: namespaceID, FsType: "ext4", AttachmentType: "detached", SizeBytes: 1 << 30,
		Labels: map[string]string{labelPV: pv, labelPVC: pvc, labelNamespace: namespace},
		Master: Deployment{ID: "master-" + id, NodeID: "node-1", Promotable: true, Health: "online"}, Replicas: []Deployment{},
		CreatedAt: now, UpdatedAt: now, Version: s.version(),
	}
}

// Change changes a volume and gives it a new version.
func (s *Server) Change(id string, change func(*Volume)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return
	}
	v.Labels = maps.Clone(v.Labels)
	change(&v)
	v.Version, v.UpdatedAt = s.version(), time.Now().UTC()
	s.volumes[id] = v
}

// Attach does what CSI ControllerPublishVolume (MULTI_NODE_MULTI_WRITER) leads to:
// the volume's NFS server runs at endpoint. A failover ends so as well.
func (s *Server) Attach(id, endpoint string) {
	s.Change(id, func(v *Volume) {
		v.AttachmentType, v.AttachedOn = "nfs", v.Master.NodeID
		v.NFS = &NFS{ServiceEndpoint: &endpoint, Exports: []Export{{ExportID: 1, Path: "/", PseudoPath: "/"}}}
	})
}

// LoseServer begins a failover: there is no NFS server, until Attach.
func (s *Server) LoseServer(id string) {
	s.Change(id, func(v *Volume) { v.NFS = &NFS{} })
}

// Detach does what CSI ControllerUnpublishVolume leads to. The label stays.
func (s *Server) Detach(id string) {
	s.Change(id, func(v *Volume) { v.AttachmentType, v.AttachedOn, v.NFS = "detached", "", nil })
}

// Delete deletes a volume.
func (s *Server) Delete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, id)
}

// Volume returns a volume.
func (s *Server) Volume(id string) (Volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	return v, ok
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Recover ends all faults.
func (s *Server) Recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Before is called with each request, before it is answered. It may change the server.
func (s *Server) Before(f func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// EndSessions makes all tokens invalid.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Requests are the methods and paths that were asked for since the last call.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.requests)
	s.requests = nil
	return list
}

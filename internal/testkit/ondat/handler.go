package ondat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Handler of the API. Paths, codes and bodies are those of go-api's openapi.yaml.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/auth/login", s.login)
	mux.HandleFunc("POST /v2/auth/refresh", s.withSession(s.refresh))
	mux.HandleFunc("GET /v2/namespaces", s.withSession(s.listNamespaces))
	mux.HandleFunc("GET /v2/namespaces/{namespace}/volumes", s.withSession(s.listVolumes))
	mux.HandleFunc("GET /v2/namespaces/{namespace}/volumes/{id}", s.withSession(s.getVolume))
	mux.HandleFunc("PUT /v2/namespaces/{namespace}/volumes/{id}/nfs/mount-endpoint", s.withSession(s.setMountEndpoint))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.broken(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// broken notes the request and answers it if a fault meets it.
func (s *Server) broken(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	path, before := strings.TrimPrefix(r.URL.Path, "/v2"), s.before
	s.requests = append(s.requests, r.Method+" "+path)
	i := slices.IndexFunc(s.faults, func(f Fault) bool {
		return cmp.Or(f.Method, r.Method) == r.Method && cmp.Or(f.Path, path) == path
	})
	var fault Fault
	if i >= 0 {
		fault = s.faults[i]
		if s.faults[i].Times--; s.faults[i].Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
	}
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	if i < 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.Status)
	fmt.Fprint(w, fault.Body)
	return true
}

func (s *Server) withSession(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		expires, ok := s.sessions[text]
		s.mu.Unlock()
		if !ok || time.Now().After(expires) {
			refuse(w, http.StatusUnauthorized, "authentication required")
			return
		}
		next(w, r)
	}
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var user struct{ Username, Password string }
	if json.NewDecoder(r.Body).Decode(&user) != nil {
		refuse(w, http.StatusBadRequest, "malformed request")
		return
	}
	if user.Username != s.Username || user.Password != s.Password {
		refuse(w, http.StatusUnauthorized, "invalid username or password")
		return
	}
	s.answerSession(w, "Authorization-Expires-Seconds")
}

func (s *Server) refresh(w http.ResponseWriter, _ *http.Request) {
	s.answerSession(w, "Authorization-Expires-In")
}

// answerSession begins a session. Login and refresh name the header of its length
// differently.
func (s *Server) answerSession(w http.ResponseWriter, header string) {
	s.mu.Lock()
	token, seconds := "eyJhbGciOi."+s.version(), int(s.Lifetime/time.Second)
	s.sessions[token] = time.Now().Add(s.Lifetime)
	s.mu.Unlock()
	w.Header().Set("Authorization", "Bearer "+token)
	w.Header().Set(header, fmt.Sprint(seconds))
	answer(w, map[string]any{
		"id": "user-1", "username": s.Username, "isAdmin": true, "groups": []string{}, "version": "dXNlcg",
		"createdAt": time.Now().UTC(), "updatedAt": time.Now().UTC(),
		"session": map[string]any{"expiresInSeconds": seconds, "token": token},
	})
}

func (s *Server) listNamespaces(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, slices.SortedFunc(maps.Values(s.namespaces), func(a, b Namespace) int { return strings.Compare(a.ID, b.ID) }))
}

func (s *Server) listVolumes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("namespace")
	if _, ok := s.namespaces[id]; !ok {
		refuse(w, http.StatusNotFound, "namespace not found")
		return
	}
	list := []Volume{}
	for _, v := range s.volumes {
		if v.NamespaceID == id {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Volume) int { return strings.Compare(a.ID, b.ID) })
	answer(w, list)
}

// find returns the volume of a request. The lock is held.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (Volume, bool) {
	v, ok := s.volumes[r.PathValue("id")]
	if !ok || v.NamespaceID != r.PathValue("namespace") {
		refuse(w, http.StatusNotFound, "volume not found")
		return v, false
	}
	return v, true
}

func (s *Server) getVolume(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.find(w, r); ok {
		answer(w, v)
	}
}

func (s *Server) setMountEndpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.find(w, r)
	if !ok {
		return
	}
	var change struct{ MountEndpoint, Version string }
	switch err := json.NewDecoder(r.Body).Decode(&change); {
	case err != nil:
		refuse(w, http.StatusBadRequest, "malformed request")
		return
	case r.URL.Query().Get("ignore-version") != "true" && change.Version != v.Version:
		refuse(w, http.StatusPreconditionFailed, "stale write: the volume has another version")
		return
	}
	v.Labels = maps.Clone(v.Labels)
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	v.Labels[labelMountEndpoint] = change.MountEndpoint
	if change.MountEndpoint == "" {
		delete(v.Labels, labelMountEndpoint)
	}
	v.Version, v.UpdatedAt = s.version(), time.Now().UTC()
	s.volumes[v.ID] = v
	w.WriteHeader(http.StatusOK)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

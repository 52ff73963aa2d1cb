package rest

import "github.com/fairlead-io/fairlead/internal/nfs/ondat"

// login is go-api's AuthUserData.
type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// userSession is go-api's UserSession; only what is read.
type userSession struct {
	Session struct {
		ExpiresInSeconds uint64 `json:"expiresInSeconds"`
		Token            string `json:"token"`
	} `json:"session"`
}

// namespace is go-api's Namespace.
type namespace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// volume is go-api's Volume. nfs, and the endpoint in it, may be null.
type volume struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	NamespaceID    string            `json:"namespaceID"`
	Labels         map[string]string `json:"labels"`
	AttachmentType string            `json:"attachmentType"`
	NFS            struct {
		ServiceEndpoint string `json:"serviceEndpoint"`
	} `json:"nfs"`
	Version string `json:"version"`
}

// domain is the volume as package ondat has it. The namespace is the one that was
// asked: an answer may leave it out.
func (v volume) domain(namespaceID string) ondat.Volume {
	return ondat.Volume{
		ID: v.ID, Name: v.Name, NamespaceID: namespaceID, Labels: v.Labels, AttachmentType: v.AttachmentType,
		ServiceEndpoint: v.NFS.ServiceEndpoint, Version: v.Version,
	}
}

// mountEndpoint is go-api's NfsVolumeMountEndpoint. An empty endpoint clears the
// label: it is the default of the field (openapi.yaml), and go-api leaves it out.
type mountEndpoint struct {
	MountEndpoint string `json:"mountEndpoint,omitempty"`
	Version       string `json:"version,omitempty"`
}

// refusal is go-api's Error.
type refusal struct {
	Error string `json:"error"`
}

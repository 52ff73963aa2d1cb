package ondat

import "time"

// Names of labels that the server sets or needs.
const (
	labelMountEndpoint = "storageos.com/nfs/mount-endpoint"
	labelPV            = "csi.storage.k8s.io/pv/name"
	labelPVC           = "csi.storage.k8s.io/pvc/name"
	labelNamespace     = "csi.storage.k8s.io/pvc/namespace"
)

// Namespace as go-api has it (model_namespace.go).
type Namespace struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	CreatedAt time.Time         `json:"createdAt"`
	UpdatedAt time.Time         `json:"updatedAt"`
	Version   string            `json:"version"`
}

// NFS of a volume (model_nfs_config.go).
type NFS struct {
	Exports         []Export `json:"exports,omitempty"`
	ServiceEndpoint *string  `json:"serviceEndpoint"`
}

// Export of a volume (model_nfs_export_config.go).
type Export struct {
	ExportID   uint64 `json:"exportID"`
	Path       string `json:"path"`
	PseudoPath string `json:"pseudoPath"`
}

// Deployment of a volume (model_master_deployment_info.go).
type Deployment struct {
	ID         string `json:"id"`
	NodeID     string `json:"nodeID"`
	Promotable bool   `json:"promotable"`
	Health     string `json:"health"`
}

// Volume as go-api has it (model_volume.go).
type Volume struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Description    string            `json:"description"`
	AttachedOn     string            `json:"attachedOn"`
	NFS            *NFS              `json:"nfs"`
	NamespaceID    string            `json:"namespaceID"`
	Labels         map[string]string `json:"labels"`
	FsType         string            `json:"fsType"`
	AttachmentType string            `json:"attachmentType"`
	Master         Deployment        `json:"master"`
	Replicas       []Deployment      `json:"replicas"`
	SizeBytes      uint64            `json:"sizeBytes"`
	CreatedAt      time.Time         `json:"createdAt"`
	UpdatedAt      time.Time         `json:"updatedAt"`
	Version        string            `json:"version"`
}

// MountEndpoint that the volume's label has; empty: none.
func (v Volume) MountEndpoint() string { return v.Labels[labelMountEndpoint] }

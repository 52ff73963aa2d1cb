package volume

// GKEDriver is the name of the GKE NFS LoadBalancer CSI driver. Fairlead serves its
// PersistentVolumes where the configuration lists the name (chart: driver.name).
const GKEDriver = "nfs.lb.csi.storage.gke.io"

// AttachedServiceAnnotation of a VolumeAttachment is the NFSService that it was
// attached to, as <namespace>/<name>: it is known even when the PersistentVolume is gone.
const AttachedServiceAnnotation = "fairlead.io/nfs-attached-service"

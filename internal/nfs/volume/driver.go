package volume

// GKEDriver is the name of the GKE NFS LoadBalancer CSI driver. Fairlead serves its
// PersistentVolumes where the configuration lists the name (chart: driver.name).
const GKEDriver = "nfs.lb.csi.storage.gke.io"

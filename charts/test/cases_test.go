package test

// variant is what both kustomize and the chart can install.
type variant struct {
	overlay    string
	components []string
	// configuration is patched into the overlay: components beside Longhorn ask for that.
	configuration string
	values        string
}

// variants cover every overlay, and every component; TestVariantsCoverAllManifests checks it.
var variants = map[string]variant{
	"Longhorn":                 {overlay: "cert-manager"},
	"Longhorn self-signed":     {overlay: "self-signed", values: `{tls: {source: selfSigned}}`},
	"Rook-Ceph":                {overlay: "rook-ceph", values: `{longhorn: {enabled: false}, fencing: {enabled: true}}`},
	"NFS":                      {overlay: "nfs", values: `{longhorn: {enabled: false}, nfs: {enabled: true}}`},
	"Ondat":                    {overlay: "ondat", values: `{longhorn: {enabled: false}, ondat: {enabled: true}}`},
	"Longhorn with monitoring": {overlay: "cert-manager", components: []string{"monitoring"}, values: `{monitoring: {enabled: true}}`},
	"Longhorn with fencing": {
		overlay: "self-signed", components: []string{"fencing"},
		values: `{tls: {source: selfSigned}, fencing: {enabled: true}}`,
	},
	"all of fencing": {
		overlay: "rook-ceph", components: []string{"fencing-tainting", "fencing-ceph-clients", "monitoring", "fencing-monitoring"},
		values: `{longhorn: {enabled: false}, fencing: {enabled: true, tainting: true, cephClients: {enabled: true}}, monitoring: {enabled: true}}`,
	},
	"Longhorn with NFS": {
		overlay: "cert-manager", components: []string{"nfs", "nfs-node-annotations", "nfs/statd"},
		configuration: `{clusterDomain: cluster.local, longhorn: {}, nfs: {statd: "on", drivers: [{name: nfs.fairlead.io}]}}`,
		values:        `{nfs: {enabled: true, nodeAnnotations: true, node: {statd: true}}}`,
	},
	"NFS and Ondat": {
		overlay: "nfs", components: []string{"ondat"},
		configuration: `{clusterDomain: cluster.local, nfs: {drivers: [{name: nfs.fairlead.io}]}, ondat: {apiEndpoint: storageos.storageos.svc}}`,
		values:        `{longhorn: {enabled: false}, nfs: {enabled: true}, ondat: {enabled: true}}`,
	},
	"all": {
		overlay: "cert-manager", components: []string{"fencing", "nfs", "ondat"},
		configuration: `{clusterDomain: example.org, longhorn: {duties: {remount: "on"}},
			fencing: {profiles: [{name: rook-ceph, mode: guard}], maxAge: 5m}, nfs: {drivers: [{name: nfs.fairlead.io}]}, ondat: {apiEndpoint: ondat.other.svc}}`,
		values: `{fencing: {enabled: true}, nfs: {enabled: true}, ondat: {enabled: true, apiEndpoint: ondat.other.svc},
			configuration: {clusterDomain: example.org, longhorn: {duties: {remount: "on"}},
				fencing: {profiles: [{name: rook-ceph, mode: guard}], maxAge: 5m}}}`,
	},
	"Ondat beside Longhorn": {
		overlay: "cert-manager", components: []string{"csi-controller", "ondat"},
		configuration: `{clusterDomain: cluster.local, longhorn: {}, nfs: {mode: off}, ondat: {apiEndpoint: storageos.storageos.svc}}`,
		values:        `{ondat: {enabled: true}}`,
	},
	"cert-manager alone": {
		overlay: "cert-manager", components: []string{"without-longhorn", "fencing"},
		values: `{longhorn: {enabled: false}, fencing: {enabled: true}}`,
		// The component fencing is for clusters with Longhorn.
		configuration: `{clusterDomain: cluster.local, fencing: {profiles: [{name: rook-ceph}]}}`,
	},
}

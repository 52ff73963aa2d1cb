package fence

import "github.com/fairlead-io/fairlead/api/v1alpha1"

// key of a storage identity: a node is one client of each driver and storage cluster, and each is fenced separately.
type key struct{ driver, clusterID string }

func keyOf(v v1alpha1.HeldVolume) key { return key{v.Driver, v.ClusterID} }
func keyOfFence(f v1alpha1.Fence) key { return key{f.Driver, f.ClusterID} }
func (k key) String() string          { return name(k.driver, k.clusterID) }
func (k key) of(i v1alpha1.StorageIdentity) bool {
	return i.Driver == k.driver && i.ClusterID == k.clusterID
}

func name(driver, clusterID string) string {
	if clusterID == "" {
		return driver
	}
	return driver + " of " + clusterID
}

// keys of the volumes, in the volumes' order, each once.
func keys(volumes []v1alpha1.HeldVolume) []key {
	var list []key
	seen := map[key]bool{}
	for _, v := range volumes {
		if k := keyOf(v); !seen[k] {
			seen[k] = true
			list = append(list, k)
		}
	}
	return list
}

// identity in a ledger.
func (k key) in(ledger []v1alpha1.StorageIdentity) (v1alpha1.StorageIdentity, bool) {
	for _, i := range ledger {
		if k.of(i) {
			return i, true
		}
	}
	return v1alpha1.StorageIdentity{}, false
}

package nodes

import "github.com/fairlead-io/fairlead/e2e/machine"

// Machine in which a cluster of nodes runs: it ends with all of them.
func Machine() machine.Spec { return machine.Spec{Folders: []string{"/var/lib"}} }

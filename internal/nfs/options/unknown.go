package options

import "github.com/fairlead-io/fairlead/internal/nfs"

const sloppy = "sloppy"

// CheckKnown reports options that neither nfs(5) nor mount(8) has: a mount with a
// misspelled one fails on every node. The option sloppy, which has mount.nfs(8)
// tolerate unknown options, allows those of newer kernels. field is the path of the options.
func (o Options) CheckKnown(field string) nfs.Problems {
	var problems nfs.Problems
	for _, option := range o.Mount {
		if option == sloppy {
			return nil
		}
	}
	for _, name := range o.Unknown {
		problems.Add(field, "%s is not an option of nfs(5) or mount(8): correct or remove it; if the nodes' kernel has it, add the option %s", name, sloppy)
	}
	return problems
}

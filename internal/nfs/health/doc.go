// Package health decides from probe results which backends of an NFS service are
// up. A backend goes Down after a number of failures in a row, and returns after
// a number of successes in a row.
//
// Never all out: where taking out what fails would leave more than a set share
// of the backends Down, nothing more is taken out. So many failures at once
// suggest that the prober or its network is at fault. The backends that fail are
// then Failing: they stay in use, and Guard says why.
//
// It is pure: results carry their time.
package health

// Package health decides from probe results which backends of an NFS service are
// up. A backend goes Down after a number of failures in a row, and returns after
// a number of successes in a row.
//
// Only a set share of the backends may be Down at once: more failures suggest a
// fault of the prober or its network. Further failing backends are Failing: they
// stay in use, and Guard gives the reason.
//
// It is pure: results carry their time.
package health

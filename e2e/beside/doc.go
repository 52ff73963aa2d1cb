// Package beside runs Longhorn's own manager in a sandbox: its controllers, its webhooks
// and its driver deployer, unmodified. Fairlead is installed beside it, or not.
//
// Everything has to run in a machine of its own, see Machine.
//
// One cluster serves all tests. A scenario begins with with(t) (Fairlead is installed),
// without(t) (Longhorn alone) or eachWay(t, ...): most scenarios run with Longhorn alone
// first, and then with Fairlead, since a workload must be able to do the same. At the end
// of a test, every write is held against the invariants (e2e/invariants).
// TestInvariantsHoldBesideLonghorn takes -for 20m -seed N.
package beside

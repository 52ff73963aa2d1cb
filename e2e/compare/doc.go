// Package compare holds the tests' stand-in for Longhorn against longhorn-manager: the
// same steps are done with both, and what settings decide of it is compared object by
// object, and the order in which each wrote.
//
// What the real manager left is kept in testdata, a folder for each version and a file per step. Fast tests hold the
// stand-in against these files; where the real manager can run, they are held against it.
// After a change of the scenario, FAIRLEAD_RECORD_LONGHORN=1 make test-longhorn
// BESIDE="-test.run LonghornIsAsRecorded" records them again, with LONGHORN=v1.8.1 those of another version.
package compare

// RecordVariable names the environment variable by which records are written instead of compared.
const RecordVariable = "FAIRLEAD_RECORD_LONGHORN"

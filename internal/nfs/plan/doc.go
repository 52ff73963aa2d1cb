// Package plan says which node of an NFS service is on which backend and why, and
// what a change of its backends would move. It reads the NFSService's status and
// the addresses of VolumeAttachments, and decides by the functions that the
// controller goes by: assign.Repoint, publish.ChooseStable and assign.Pool.Plan.
//
// It is pure: values in, values out.
package plan

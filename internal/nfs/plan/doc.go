// Package plan explains which backend each node of an NFS service uses, and
// what a change of the backends would move. It reads the NFSService's status and
// the addresses of VolumeAttachments, and decides with the functions of the
// controller: assign.Repoint, definition.ChooseStable and assign.Pool.Plan.
//
// It is pure: values in, values out.
package plan

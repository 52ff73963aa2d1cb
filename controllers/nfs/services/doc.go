// Package services is the controller of NFSServices: it probes their servers, takes
// dead ones out, points slots and stable addresses to living ones, and reports in
// status. Nodes are assigned by controllers/nfs/attach, from what status records.
//
// Status is written before what follows from it: a slot is recorded before its
// Service is created, an address before a node mounts it, a move before it is
// published. So a crash at any step resumes, and nothing moves twice.
package services

// Package pools holds in memory which node uses which server: one assign.Pool for
// each NFSService. Everything is derived: nodes from VolumeAttachments, servers and
// slots from the status of NFSServices. A restart, or another replica, comes to the
// same assignments. No lock is held during a request to the API server.
package pools

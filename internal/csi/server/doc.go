// Package server serves gRPC on Unix sockets: the CSI driver's socket, and the socket that registers the driver with the
// kubelet.
//
// A panic in a call becomes Internal. A service that was not registered answers
// Unimplemented: the GKE driver registers nil servers, and a call to one ends its process.
package server

// Package rest is a client of Ondat's control plane: login, the volumes of all
// namespaces, and the mount endpoint of a volume.
//
// Requests and answers are those of github.com/storageos/go-api/v2 v2.4.0, which the
// test bed is driven by (e2e/ondat). It waits for nothing but the network: the
// first request logs in, and later ones keep the session alive.
//
// Errors say what to do. They hold neither token nor password.
package rest

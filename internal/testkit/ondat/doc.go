// Package ondat is the test bed's Ondat: a server of the control plane's REST API,
// version 2, in memory. It has what shared volumes need: sessions, namespaces,
// volumes, attaching over NFS, failover, and mount endpoints with versions.
//
// It is held to github.com/storageos/go-api/v2 v2.4.0, the real client, by the tests
// of module e2e/ondat/goapi.
package ondat

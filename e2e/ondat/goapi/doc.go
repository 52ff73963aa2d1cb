// Package goapi drives the test bed's Ondat through the real client of its API,
// github.com/storageos/go-api/v2. It is a module of its own, so that Fairlead does
// not depend on the client.
package goapi

// Package api has the objects of the v2 data engine that instance managers read.
package api

import (
	"github.com/longhorn/longhorn-spdk-engine/pkg/types"
)

type Replica struct {
	Name, LvsName, LvsUUID, State, ErrorMsg string
	SpecSize, ActualSize                    uint64
	PortStart, PortEnd                      int32
}

type Engine struct {
	Name, State, ErrorMsg, Endpoint, Frontend string
	SpecSize, ActualSize                      uint64
	Port, TargetPort                          int32
	ReplicaAddressMap                         map[string]string
	ReplicaModeMap                            map[string]types.Mode
	Head                                      *Lvol
	Snapshots                                 map[string]*Lvol
}

type Lvol struct {
	Name, Parent, CreationTime, SnapshotTimestamp string
	Children                                      map[string]bool
	UserCreated                                   bool
	ActualSize                                    uint64
}

type ReplicaStream struct{ Stream }

type EngineStream struct{ Stream }

// Stream never comes to be.
type Stream interface{ Recv() (any, error) }

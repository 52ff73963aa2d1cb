// Package client has the client of the v2 data engine as instance managers call it. It
// has no server: the module proxy does not have Longhorn's, and tests use the v1 data engine.
package client

import (
	"context"
	"errors"

	"github.com/longhorn/types/pkg/generated/spdkrpc"

	"github.com/longhorn/longhorn-spdk-engine/pkg/api"
)

var errMissing = errors.New("the v2 data engine is not built for tests")

// SPDKClient can't be had: NewSPDKClient fails.
type SPDKClient struct{}

type BackupCreateRequest struct {
	BackupName, SnapshotName, VolumeName, EngineName, BackupTarget, StorageClassName string
	BackingImageName, BackingImageChecksum, CompressionMethod                        string
	ConcurrentLimit                                                                  int32
	Labels                                                                           []string
	Credential                                                                       map[string]string
}

type BackupRestoreRequest struct {
	BackupUrl, EngineName string
	Credential            map[string]string
	ConcurrentLimit       int32
}

func NewSPDKClient(string) (*SPDKClient, error) { return nil, errMissing }

func (*SPDKClient) Close() error { return nil }

func (*SPDKClient) EngineCreate(_, _, _ string, _ uint64, _ map[string]string, _ int32, _, _ string, _ bool) (*api.Engine, error) {
	return nil, errMissing
}
func (*SPDKClient) EngineGet(string) (*api.Engine, error)                    { return nil, errMissing }
func (*SPDKClient) EngineList() (map[string]*api.Engine, error)              { return nil, errMissing }
func (*SPDKClient) EngineWatch(context.Context) (*api.EngineStream, error)   { return nil, errMissing }
func (*SPDKClient) EngineDelete(string) error                                { return errMissing }
func (*SPDKClient) EngineDeleteTarget(string) error                          { return errMissing }
func (*SPDKClient) EngineSuspend(string) error                               { return errMissing }
func (*SPDKClient) EngineResume(string) error                                { return errMissing }
func (*SPDKClient) EngineSwitchOverTarget(_, _ string) error                 { return errMissing }
func (*SPDKClient) EngineReplicaAdd(_, _, _ string) error                    { return errMissing }
func (*SPDKClient) EngineReplicaDelete(_, _, _ string) error                 { return errMissing }
func (*SPDKClient) EngineSnapshotCreate(_, _ string) (string, error)         { return "", errMissing }
func (*SPDKClient) EngineSnapshotDelete(_, _ string) error                   { return errMissing }
func (*SPDKClient) EngineSnapshotRevert(_, _ string) error                   { return errMissing }
func (*SPDKClient) EngineSnapshotPurge(string) error                         { return errMissing }
func (*SPDKClient) EngineBackupRestore(*BackupRestoreRequest) error          { return errMissing }
func (*SPDKClient) EngineBackupRestoreFinish(string) error                   { return errMissing }
func (*SPDKClient) ReplicaGet(string) (*api.Replica, error)                  { return nil, errMissing }
func (*SPDKClient) ReplicaList() (map[string]*api.Replica, error)            { return nil, errMissing }
func (*SPDKClient) ReplicaWatch(context.Context) (*api.ReplicaStream, error) { return nil, errMissing }
func (*SPDKClient) ReplicaDelete(string, bool) error                         { return errMissing }
func (*SPDKClient) DiskDelete(_, _, _, _ string) error                       { return errMissing }
func (*SPDKClient) DiskGet(_, _, _ string) (*spdkrpc.Disk, error)            { return nil, errMissing }
func (*SPDKClient) LogSetLevel(string) error                                 { return errMissing }
func (*SPDKClient) LogSetFlags(string) error                                 { return errMissing }
func (*SPDKClient) LogGetLevel() (string, error)                             { return "", errMissing }
func (*SPDKClient) LogGetFlags() (string, error)                             { return "", errMissing }

func (*SPDKClient) ReplicaCreate(_, _, _ string, _ uint64, _ int32) (*api.Replica, error) {
	return nil, errMissing
}

func (*SPDKClient) DiskCreate(_, _, _, _ string, _ int64) (*spdkrpc.Disk, error) {
	return nil, errMissing
}

func (*SPDKClient) EngineBackupCreate(*BackupCreateRequest) (*spdkrpc.BackupCreateResponse, error) {
	return nil, errMissing
}

func (*SPDKClient) EngineBackupStatus(_, _, _ string) (*spdkrpc.BackupStatusResponse, error) {
	return nil, errMissing
}

func (*SPDKClient) EngineRestoreStatus(string) (*spdkrpc.RestoreStatusResponse, error) {
	return nil, errMissing
}

func (*SPDKClient) ReplicaRebuildingDstShallowCopyCheck(string) (*spdkrpc.ReplicaRebuildingDstShallowCopyCheckResponse, error) {
	return nil, errMissing
}

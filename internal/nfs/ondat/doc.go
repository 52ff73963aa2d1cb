// Package ondat decides which volumes of an Ondat (formerly StorageOS) control
// plane are published as NFS services, and how: what counts as a shared volume, why
// a volume is ignored, what its Service is called and which address it keeps.
//
// Source: the StorageOS shared volume controller (api-manager, 2021-07), with
// volumes as github.com/storageos/go-api/v2 v2.4.0 reports them.
//
// It is pure: values in, verdict out. Package rest asks the control plane;
// controllers/ondat acts.
package ondat

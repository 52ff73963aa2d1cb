package pools

import (
	"regexp"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

var unfit = regexp.MustCompile("[^a-zA-Z0-9-]")

// Finalizer of a driver's attacher on VolumeAttachments and PersistentVolumes. It is the sidecar's, so that either can
// take over from the other (external-attacher v4.12.0, pkg/controller/util.go: GetFinalizerName).
func Finalizer(driver string) string {
	name := unfit.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return finalizerPrefix + name
}

const finalizerPrefix = "external-attacher/"

// IsFinalizer reports whether a finalizer is of the driver's attacher. Fairlead's first attachments have the driver's
// name as it is.
func IsFinalizer(driver, finalizer string) bool {
	return finalizer == Finalizer(driver) || finalizer == finalizerPrefix+driver
}

// Detached reports whether a VolumeAttachment is deleted and released by the attacher:
// other finalizers keep the object, and its node has no mount any more.
func Detached(va *storagev1.VolumeAttachment) bool {
	return va.DeletionTimestamp != nil && !IsHeld(va)
}

// IsHeld reports whether a VolumeAttachment has a finalizer of its attacher.
func IsHeld(va *storagev1.VolumeAttachment) bool {
	return slices.ContainsFunc(va.Finalizers, func(f string) bool { return IsFinalizer(va.Spec.Attacher, f) })
}

// WithoutFinalizers are an object's finalizers without those of the driver's attacher.
func WithoutFinalizers(driver string, finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return IsFinalizer(driver, f) })
}

// Package longhorn is the table of the versions of Longhorn that the tests beside its own manager run: one file each. What
// differs between versions is data here, and named nowhere else. Modules of Go are in the folder instances, by version.
package longhorn

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Variable names the environment variable with the version to run.
const Variable = "LONGHORN"

// Version of Longhorn.
type Version struct {
	// Name is its tag, such as v1.7.2.
	Name string
	// FromSource: module proxies may refuse what this version needs. It is built from a checkout.
	FromSource bool
	// Sidecars are the images that its driver deployer is given, as name:tag. Empty: the deployer knows its own.
	Sidecars []string
	// RWXNetwork is the setting of the network for RWX volumes, RWXInterface the interface in pods.
	RWXNetwork, RWXInterface string
	// BackOff is the longest time that it waits before it recreates pods of instance and share managers that restart often.
	BackOff time.Duration
	// AppliedStays are settings of which it never writes applied: false, so that its true is of the value before.
	AppliedStays []string
	// Zone is its danger zone, without the settings in Fixed.
	Zone Zone
	// Fixed are settings that it refuses to change on the simulated nodes.
	Fixed []string
}

// All versions, the earliest first.
var All = []Version{v1_7_2, v1_8_1, v1_10_0, v1_12_1}

// Default is what tests run unless told otherwise.
var Default = v1_7_2

// Upgrades are the versions that Longhorn is upgraded to, one after the other, from Default.
var Upgrades = []string{v1_8_1.Name, v1_10_0.Name}

// Named finds a version; empty is Default.
func Named(name string) (Version, error) {
	if name == "" {
		return Default, nil
	}
	var names []string
	for _, v := range All {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return Version{}, fmt.Errorf("%s=%s: there are %s", Variable, name, strings.Join(names, ", "))
}

// Wanted is the version that the environment names.
func Wanted() (Version, error) { return Named(os.Getenv(Variable)) }

// Image of a part of Longhorn, such as longhorn-manager.
func (v Version) Image(part string) string { return "longhornio/" + part + ":" + v.Name }

// SidecarVariables are the environment of the driver deployer.
func (v Version) SidecarVariables() (variables []string) {
	for _, image := range v.Sidecars {
		name, _, _ := strings.Cut(image, ":")
		name = strings.TrimPrefix(name, "csi-")
		if name == "livenessprobe" {
			name = "liveness-probe"
		}
		variables = append(variables, "CSI_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"_IMAGE=longhornio/"+image)
	}
	return variables
}

// RWXValue is the value of RWXNetwork by which RWX volumes use a network. Versions with a switch use the storage network.
func (v Version) RWXValue(network string) string {
	switch {
	case v.RWXNetwork == endpointNetwork:
		return network
	case network == "":
		return "false"
	}
	return "true"
}

// HasSwitch reports whether RWX volumes can only use the storage network.
func (v Version) HasSwitch() bool { return v.RWXNetwork == networkSwitch }

// Settings of the network for RWX volumes.
const (
	networkSwitch   = "storage-network-for-rwx-volume-enabled"
	endpointNetwork = "endpoint-network-for-rwx-volume"
)

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const nfsHead = "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\n"

func TestDefaultsOfNFS(t *testing.T) {
	c, err := Parse([]byte(nfsHead))
	must.Do(t, err)
	if d := c.NFS.Drivers; len(d) != 1 || d[0] != (NFSDriver{Name: "nfs.fairlead.io", NodeAnnotations: NodeAnnotationsOff}) || c.NFS.Mode != On {
		t.Errorf("got %+v", c.NFS)
	}
}

func TestNFSServesNothingWhenOff(t *testing.T) {
	c, err := Parse([]byte(nfsHead + "nfs: {mode: off}\nondat: {}\n"))
	must.True(t, err == nil && c.NFS.Mode == Off && len(c.NFS.Drivers) == 0, "got %+v, %v", c, err)
	_, err = Parse([]byte(nfsHead + "nfs: {mode: off, drivers: [{name: nfs.fairlead.io}]}\nondat: {}\n"))
	must.True(t, err != nil && strings.Contains(err.Error(), "nfs.drivers"), "drivers that are not served: %v", err)
}

func TestDriversOfNFS(t *testing.T) {
	c, err := Parse([]byte(nfsHead + `nfs:
  drivers:
    - name: nfs.lb.csi.storage.gke.io
      defaultService: storage/pool
      nodeAnnotations: write
    - name: nfs.fairlead.io
      nodeAnnotations: off
`))
	must.Do(t, err)
	if d := c.NFS.Drivers; d[0].Service().String() != "storage/pool" || d[0].NodeAnnotations != NodeAnnotationsWrite || d[1].NodeAnnotations != NodeAnnotationsOff || d[1].Service().Name != "" {
		t.Errorf("got %+v", d)
	}
}

func TestAllProblemsOfNFSAreNamed(t *testing.T) {
	_, err := Parse([]byte(nfsHead + `nfs:
  statd: maybe
  mode: slices
  drivers:
    - {name: a_b, defaultService: pool, nodeAnnotations: sometimes}
    - {name: nfs.fairlead.io, nodeAnnotations: write}
    - {name: nfs.fairlead.io}
`))
	must.True(t, err != nil, "accepted")
	for _, want := range []string{
		"nfs.statd", "nfs.mode", "nfs.drivers[0].name", "nfs.drivers[0].defaultService", "nfs.drivers[0].nodeAnnotations",
		"nfs.drivers[1].defaultService", "nfs.drivers[2].name",
	} {
		must.True(t, strings.Contains(err.Error(), want), "no problem with %s in: %v", want, err)
	}
}

func TestDefaultServicesOfDrivers(t *testing.T) {
	c, err := Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nnfs: {drivers: [{name: nfs.fairlead.io}, {name: nfs.lb.csi.storage.gke.io, defaultService: archive/vault}]}"))
	must.Do(t, err)
	must.Equal(t, fmt.Sprint(c.NFS.DefaultServices()), "map[nfs.fairlead.io:/ nfs.lb.csi.storage.gke.io:archive/vault]")
}

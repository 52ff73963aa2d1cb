package cluster

import (
	"strings"
	"testing"
)

func TestAllOptionErrorsAreReported(t *testing.T) {
	options := Defaults()
	options.Nodes = -1
	options.ClusterDomain = "Not A Domain"
	err := options.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, flag := range []string{"--dir", "--nodes", "--cluster-domain"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is missing in: %v", flag, err)
		}
	}
}

func TestDefaultsNeedOnlyAFolder(t *testing.T) {
	options := Defaults()
	options.Dir = t.TempDir()
	if err := options.Validate(); err != nil {
		t.Error(err)
	}
}

func TestPortsAreDifferentAndFree(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] || port < firstPort || port >= lastPort {
			t.Errorf("port %d is a double or out of range", port)
		}
		seen[port] = true
	}
}

func TestForwardsAreRead(t *testing.T) {
	got, err := ParseForward("fairlead-system:9444=20001")
	if want := (Forward{"fairlead-system", 9444, 20001}); err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	for _, text := range []string{"", "9444=20001", "a:b=c", "A_B:1=2", "a:99999999999999999999=1"} {
		if _, err := ParseForward(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

package multus

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestReportedAddresses(t *testing.T) {
	const storageNet, own = `{"name": "kube-system/a", "interface": "lhnet1", "ips": [%s]}`, `{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "default": true}`
	reports := func(ips string) string { return "[" + own + ", " + fmt.Sprintf(storageNet, ips) + "]" }
	for name, test := range map[string]struct {
		status, oldStatus string
		of                Attachment
		want              []string
		problem           string
	}{
		"both families":                    {status: reports(`"192.168.0.3", "fd00::3"`), of: netA, want: []string{"192.168.0.3", "fd00::3"}},
		"annotation of before Multus 3.5":  {oldStatus: reports(`"192.168.0.3"`), of: netA, want: []string{"192.168.0.3"}},
		"the new annotation wins":          {status: reports(`"192.168.0.4"`), oldStatus: reports(`"192.168.0.3"`), of: netA, want: []string{"192.168.0.4"}},
		"another interface of the network": {status: reports(`"192.168.0.3"`), of: Attachment{netA.Network, "net1"}},
		"the interface on another network": {status: reports(`"192.168.0.3"`), of: Attachment{netB.Network, "lhnet1"}},
		"only the pod's own address":       {status: "[" + own + "]", of: netA},
		"nothing is reported for the zero": {oldStatus: `[{"name": "", "ips": ["10.42.0.7"], "default": true, "dns": {}}]`},
		"nothing reported":                 {of: netA},
		"reported without an address":      {status: reports(""), of: netA},
		"not JSON":                         {status: "[", of: netA, problem: "reading the network status: unexpected end of JSON input"},
		"not an address": {status: reports(`"192.168.0"`), of: netA,
			problem: `reading the network status of kube-system/a@lhnet1: ParseAddr("192.168.0"): IPv4 address too short`},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			if test.status != "" {
				annotations[NetworkStatusAnnotation] = test.status
			}
			if test.oldStatus != "" {
				annotations[oldNetworkStatusAnnotation] = test.oldStatus
			}
			addresses, err := addressesOf(annotations, test.of)
			var got []string
			for _, a := range addresses {
				got = append(got, a.String())
			}
			must.True(t, text(err) == test.problem && slices.Equal(got, test.want), "got %v, %v; want %v, %s", got, err, test.want, test.problem)
		})
	}
}

func addressesOf(annotations map[string]string, a Attachment) ([]netip.Addr, error) {
	reported, err := ReportedInterfaces(annotations)
	if err != nil {
		return nil, err
	}
	return AddressesOn(reported, a)
}

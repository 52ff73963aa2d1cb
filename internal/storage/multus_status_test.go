package storage

import (
	"net/netip"
	"slices"
	"testing"
)

func TestReportedAddresses(t *testing.T) {
	ours := Attachment{Network{"kube-system", "storage-net"}, "lhnet1"}
	const own = `{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "default": true}`
	for name, test := range map[string]struct {
		annotations map[string]string
		of          Attachment
		want        []string
		problem     string
	}{
		"both families": {
			annotations: map[string]string{NetworkStatusAnnotation: `[` + own + `, {"name": "kube-system/storage-net", "interface": "lhnet1", "ips": ["192.168.0.3", "fd00::3"], "mac": "02:00"}]`},
			of:          ours, want: []string{"192.168.0.3", "fd00::3"},
		},
		"the annotation of before Multus 3.5": {
			annotations: map[string]string{OldNetworkStatusAnnotation: `[{"name": "kube-system/storage-net", "interface": "lhnet1", "ips": ["192.168.0.3"]}]`},
			of:          ours, want: []string{"192.168.0.3"},
		},
		"the new annotation wins over the old": {
			annotations: map[string]string{
				NetworkStatusAnnotation:    `[{"name": "kube-system/storage-net", "interface": "lhnet1", "ips": ["192.168.0.4"]}]`,
				OldNetworkStatusAnnotation: `[{"name": "kube-system/storage-net", "interface": "lhnet1", "ips": ["192.168.0.3"]}]`,
			},
			of: ours, want: []string{"192.168.0.4"},
		},
		"another interface of the network": {
			annotations: map[string]string{NetworkStatusAnnotation: `[{"name": "kube-system/storage-net", "interface": "net1", "ips": ["192.168.0.3"]}]`},
			of:          ours,
		},
		"the interface on another network": {
			annotations: map[string]string{NetworkStatusAnnotation: `[{"name": "kube-system/backup-net", "interface": "lhnet1", "ips": ["192.168.0.3"]}]`},
			of:          ours,
		},
		"only the pod's own address": {annotations: map[string]string{NetworkStatusAnnotation: `[` + own + `]`}, of: ours},
		"the cluster network has none that Multus reports": {
			annotations: map[string]string{OldNetworkStatusAnnotation: `[{"name": "", "ips": ["10.42.0.7"], "default": true, "dns": {}}]`},
		},
		"nothing reported yet": {annotations: map[string]string{}, of: ours},
		"reported without address": {
			annotations: map[string]string{NetworkStatusAnnotation: `[{"name": "kube-system/storage-net", "interface": "lhnet1"}]`}, of: ours,
		},
		"not JSON": {
			annotations: map[string]string{NetworkStatusAnnotation: `[`}, of: ours,
			problem: "reading the network status: unexpected end of JSON input",
		},
		"not an address": {
			annotations: map[string]string{NetworkStatusAnnotation: `[{"name": "kube-system/storage-net", "interface": "lhnet1", "ips": ["192.168.0"]}]`}, of: ours,
			problem: `reading the network status of kube-system/storage-net@lhnet1: ParseAddr("192.168.0"): IPv4 address too short`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReportedAddresses(test.annotations, test.of)
			if test.problem != "" {
				if err == nil || err.Error() != test.problem || got != nil {
					t.Fatalf("got %v, %v; want %s", got, err, test.problem)
				}
				return
			}
			var want []netip.Addr
			for _, ip := range test.want {
				want = append(want, netip.MustParseAddr(ip))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}

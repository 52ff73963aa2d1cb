package watchers

import (
	"net/netip"
	"slices"
	"testing"
)

func TestMgrMetadata(t *testing.T) {
	hosts, err := ParseMgrMetadata([]byte("\n" + `[{"name":"x","addr":"10.99.0.6","addrs":"10.99.0.6:0/127","arch":"x86_64","hostname":"mgr"},` +
		`{"name":"y","addr":"2001:db8::6","addrs":"[v2:[2001:db8::6]:6800/1,v1:[2001:db8::6]:6801/1]"},{"name":"z","addrs":"10.99.0.6:0/5"}]`))
	if want := []netip.Addr{netip.MustParseAddr("10.99.0.6"), netip.MustParseAddr("2001:db8::6")}; err != nil || !slices.Equal(hosts, want) {
		t.Errorf("%v, %v", hosts, err)
	}
	for _, text := range []string{"", "{}", `[{}]`, `[{"name":"x"}]`, `[{"name":"x","addr":"10.99.0.6"}]`, `[{"name":"x","addrs":"-"}]`, "[][]"} {
		if hosts, err := ParseMgrMetadata([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, hosts)
		}
	}
}

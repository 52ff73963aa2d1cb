package ceph

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// The hosts. Each daemon has one of its own, so that what blocking an address
// does to it is seen by itself.
const (
	monHost, mgrHost           = "mon", "mgr"
	osd0Host, osd1Host         = "osd-0", "osd-1"
	mdsAHost, mdsBHost         = "mds-a", "mds-b"
	adminHost                  = "admin"
	node1Host, node2Host       = "node-1", "node-2"
	rbdPool, metaPool          = "rbd", "cephfs-meta"
	dataPool, fileSystem       = "cephfs-data", "cephfs"
	osdBytes             int64 = 4 << 30
)

var hostNumbers = map[string]int{
	monHost: 1, osd0Host: 2, osd1Host: 3, mdsAHost: 4, mdsBHost: 5, mgrHost: 6,
	adminHost: 10, node1Host: 11, node2Host: 12,
}

// subnet is where all hosts are. It is in a network namespace of its own, so it
// may be any.
func subnet(ipv6 bool) netip.Prefix {
	if ipv6 {
		return netip.MustParsePrefix("2001:db8::/64")
	}
	return netip.MustParsePrefix("10.99.0.0/24")
}

func hostPrefix(ipv6 bool, number int) netip.Prefix {
	network := subnet(ipv6)
	bytes := network.Addr().AsSlice()
	bytes[len(bytes)-1] = byte(number)
	address, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(address, network.Bits())
}

func uuid() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func bracketed(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

func (c *Cluster) monAddresses() string {
	mon := bracketed(c.hosts[monHost].Address)
	return fmt.Sprintf("[v2:%s:3300,v1:%s:6789]", mon, mon)
}

// writeConfig writes a ceph.conf and the keys of all daemons. With keys, since
// the rights of users are part of the test.
func (c *Cluster) writeConfig(ctx context.Context, fsid string) error {
	in := func(name string) string { return filepath.Join(c.Directory, name) }
	ipv6 := c.hosts[monHost].Address.Is6()
	conf := fmt.Sprintf(`[global]
fsid = %s
mon_host = %s
ms_bind_ipv4 = %t
ms_bind_ipv6 = %t
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
osd_pool_default_size = 2
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
run_dir = %s
admin_socket = %s/$name.$pid.asok
log_file = %s/$name.log
keyring = %s
bluestore_block_size = %d
osd_memory_target = 939524096
osd_numa_auto_affinity = false
mon_data_avail_warn = 1
mon_data_avail_crit = 1
mgr_initial_modules =
`, fsid, c.monAddresses(), !ipv6, ipv6, in("run"), in("run"), in("log"), in("keyring"), osdBytes)
	for _, d := range daemons {
		conf += fmt.Sprintf("[%s]\n%s_data = %s\npublic_addr = %s\n", d.name(), d.kind, in(d.name()), c.hosts[d.host].Address)
	}
	if err := os.WriteFile(in("ceph.conf"), []byte(conf), 0o644); err != nil {
		return err
	}
	keys := [][]string{
		{"mon.", "mon", "allow *"},
		{"client.admin", "mon", "allow *", "osd", "allow *", "mds", "allow *", "mgr", "allow *"},
	}
	for _, d := range daemons[1:] {
		keys = append(keys, append([]string{d.name()}, strings.Split(d.caps, ",")...))
	}
	for i, key := range keys {
		args := []string{in("keyring"), "--gen-key", "-n", key[0]}
		if i == 0 {
			args = append(args, "--create-keyring")
		}
		for j := 1; j < len(key); j += 2 {
			args = append(args, "--cap", key[j], key[j+1])
		}
		if _, err := c.Admin.Run(ctx, "ceph-authtool", args...); err != nil {
			return err
		}
	}
	_, err := c.Admin.Run(ctx, "monmaptool", "--create", "--fsid", fsid, "--addv", "a", c.monAddresses(), in("monmap"))
	return err
}

package rpc

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// conn is one connection to one RPC service.
type conn struct {
	probe   *probe
	address netip.AddrPort
	net     net.Conn
	reader  *bufio.Reader
	unwatch func() bool
}

func (p *probe) dial(address netip.AddrPort) (*conn, *fault) {
	connection, err := p.client.dialer(p.target)(p.ctx, address)
	if err != nil {
		return nil, p.dialFault(address, err)
	}
	unwatch := context.AfterFunc(p.ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	return &conn{probe: p, address: address, net: connection, reader: bufio.NewReaderSize(connection, 512), unwatch: unwatch}, nil
}

func (c *conn) close() {
	c.unwatch()
	_ = c.net.Close()
}

// call makes one call and waits for its reply. The probe's context bounds both. Step names the call in messages.
func (c *conn) call(step string, call wire.Call) (wire.Reply, *fault) {
	xid, f := c.send(step, call)
	if f != nil {
		return wire.Reply{}, f
	}
	return c.receive(step, xid)
}

func (c *conn) send(step string, call wire.Call) (xid uint32, f *fault) {
	call.XID = rand.Uint32()
	if _, err := c.net.Write(call.Record()); err != nil {
		return 0, c.probe.callFault(c.address, step, err)
	}
	return call.XID, nil
}

func (c *conn) receive(step string, xid uint32) (wire.Reply, *fault) {
	record, err := wire.ReadRecord(c.reader)
	if err != nil {
		return wire.Reply{}, c.probe.callFault(c.address, step, err)
	}
	reply, err := wire.ParseReply(record, xid)
	if err != nil {
		return wire.Reply{}, malformed(c.address, step, err)
	}
	return reply, nil
}

package rpc

import (
	"bufio"
	"context"
	"fmt"
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

func (p *probe) connect(address netip.AddrPort) (*conn, error) {
	connection, err := p.dial(p.ctx, address)
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
func (c *conn) call(step string, call wire.Call) (wire.Reply, error) {
	call.XID = rand.Uint32()
	if _, err := c.net.Write(call.Record()); err != nil {
		return wire.Reply{}, c.probe.callFault(c.address, step, err)
	}
	record, err := wire.ReadRecord(c.reader)
	if err != nil {
		return wire.Reply{}, c.probe.callFault(c.address, step, err)
	}
	reply, err := wire.ParseReply(record, call.XID)
	if err != nil {
		return wire.Reply{}, malformed(c.address, step, err)
	}
	return reply, nil
}

// results makes a call to MOUNT or the port mapper, and returns what it gives back.
func (c *conn) results(step string, call wire.Call) ([]byte, error) {
	reply, err := c.call(step, call)
	switch {
	case err != nil:
		return nil, err
	case reply.Outcome == wire.AuthError:
		return nil, errDenied
	case reply.Outcome != wire.Success:
		return nil, fmt.Errorf("%s answered %s to %s", c.address, reply.Outcome, step)
	}
	return reply.Results, nil
}

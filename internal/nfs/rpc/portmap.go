package rpc

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// dialMount connects to the MOUNT service.
func (p *probe) dialMount() (*conn, *fault) {
	port := p.target.MountPort
	if port == 0 {
		var f *fault
		if port, f = p.mountPort(); f != nil {
			return nil, f
		}
	}
	return p.dial(netip.AddrPortFrom(p.target.Address.Addr(), port))
}

// mountPort asks the port mapper where MOUNT version 3 listens.
func (p *probe) mountPort() (uint16, *fault) {
	mapper, f := p.dial(netip.AddrPortFrom(p.target.Address.Addr(), cmp.Or(p.target.PortMapperPort, PortPortMapper)))
	if f != nil {
		return 0, f
	}
	defer mapper.close()
	step, call, parse := p.mapperCall()
	reply, f := mapper.call(step, call)
	if f != nil {
		return 0, f
	}
	if reply.Outcome != wire.Success {
		return 0, p.mountOutcome(mapper, step, reply)
	}
	port, err := parse(reply.Results)
	if err != nil {
		return 0, malformed(mapper.address, step, err)
	}
	if port == 0 {
		return 0, &fault{MountDown, fmt.Sprintf("the port mapper at %s knows no MOUNT version 3 over TCP; start it, or set the mount port", mapper.address)}
	}
	return port, nil
}

// mapperCall is GETPORT, which all port mappers have, or GETADDR of rpcbind for IPv6.
func (p *probe) mapperCall() (step string, call wire.Call, parse func([]byte) (uint16, error)) {
	call.Program = wire.ProgramPortMapper
	if p.target.Address.Addr().Unmap().Is4() {
		call.Version, call.Procedure = wire.VersionPortMapper, wire.ProcedureGetPort
		call.Arguments = wire.GetPortArguments(wire.ProgramMount, wire.VersionMount)
		return "GETPORT", call, wire.ParsePort
	}
	call.Version, call.Procedure = wire.VersionRPCBind, wire.ProcedureGetAddress
	call.Arguments = wire.GetAddressArguments(wire.ProgramMount, wire.VersionMount, "tcp6")
	return "GETADDR", call, wire.ParseAddress
}

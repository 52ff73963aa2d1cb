package rpc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// errDenied: MOUNT or the port mapper does not accept the prober's credential. That is no failure of the service.
var errDenied = errors.New("denied to the prober")

// shares3 asks the MOUNT service for each share, and NFS for the attributes of its root. If the MOUNT service
// does not answer, that is a problem of the shares: NFS did answer.
func (p *probe) shares3(nfs *conn) error {
	mount, err := p.connectMount()
	if err != nil {
		return p.mountFault(err)
	}
	defer mount.close()
	for _, share := range p.Shares {
		handle, err := p.mount(mount, share)
		if err != nil {
			return p.mountFault(err)
		}
		if handle == nil {
			continue // it is judged already
		}
		call := wire.Call{Program: wire.ProgramNFS, Version: uint32(V3), Procedure: wire.ProcedureGetAttr, Credential: credential, Arguments: wire.HandleArguments(handle)}
		err = p.lookUp(nfs, V3, share, "GETATTR", call)
		// UMNT only removes the server's record of the mount. Without waiting for the reply, a reset may drop the call.
		_, _ = mount.call("UMNT", mountCall(wire.ProcedureUnmount, share))
		if err != nil {
			return err
		}
	}
	return nil
}

// mountFault judges an error of the MOUNT service or the port mapper.
func (p *probe) mountFault(err error) error {
	switch {
	case errors.Is(err, errDenied):
		return nil
	case errors.Is(err, errOwn):
		return err
	}
	p.problem("%s answers, and its shares can't be looked up: %v", p.server(V3), err)
	return nil
}

// mount returns the handle of a share; nil: the server gave none.
func (p *probe) mount(mount *conn, share string) ([]byte, error) {
	const step = "MNT"
	reply, err := mount.results(step, mountCall(wire.ProcedureMount, share))
	if err != nil {
		return nil, err
	}
	status, handle, err := wire.ParseMount(reply)
	if err != nil {
		return nil, malformed(mount.address, step, err)
	}
	if (status == wire.PermissionDenied || status == wire.AccessDenied) && p.unlisted(mount, share) {
		status = wire.NoEntry
	}
	p.share(V3, share, step, status)
	return handle, nil
}

// unlisted reports whether EXPORT lists neither the share nor a directory above it. Linux' mountd and NFS-Ganesha
// deny a path that is not exported, as they deny one that the prober may not mount. Without an answer it is false.
func (p *probe) unlisted(mount *conn, share string) bool {
	reply, err := mount.results("EXPORT", wire.Call{
		Program: wire.ProgramMount, Version: wire.VersionMount, Procedure: wire.ProcedureExports, Credential: credential,
	})
	if err != nil {
		return false
	}
	exports, err := wire.ParseExports(reply)
	return err == nil && !slices.ContainsFunc(exports, func(export string) bool {
		return share == export || strings.HasPrefix(share, strings.TrimSuffix(export, "/")+"/")
	})
}

func mountCall(procedure uint32, share string) wire.Call {
	return wire.Call{
		Program: wire.ProgramMount, Version: wire.VersionMount, Procedure: procedure,
		Credential: credential, Arguments: wire.PathArguments(share),
	}
}

// connectMount connects to the MOUNT service.
func (p *probe) connectMount() (*conn, error) {
	port := p.MountPort
	if port == 0 {
		var err error
		if port, err = p.mountPort(); err != nil {
			return nil, err
		}
	}
	return p.connect(netip.AddrPortFrom(p.Address.Addr(), port))
}

// mountPort asks the port mapper where MOUNT version 3 listens.
func (p *probe) mountPort() (uint16, error) {
	mapper, err := p.connect(netip.AddrPortFrom(p.Address.Addr(), p.portMapper))
	if err != nil {
		return 0, err
	}
	defer mapper.close()
	step, call, parse := p.mapperCall()
	reply, err := mapper.results(step, call)
	if err != nil {
		return 0, err
	}
	port, err := parse(reply)
	if err != nil {
		return 0, malformed(mapper.address, step, err)
	}
	if port == 0 {
		return 0, fmt.Errorf("the port mapper at %s knows no MOUNT version 3 over TCP; start it, or set the mount port", mapper.address)
	}
	return port, nil
}

// mapperCall is GETPORT, which all port mappers have, or GETADDR of rpcbind for IPv6.
func (p *probe) mapperCall() (step string, call wire.Call, parse func([]byte) (uint16, error)) {
	call.Program = wire.ProgramPortMapper
	if p.Address.Addr().Unmap().Is4() {
		call.Version, call.Procedure = wire.VersionPortMapper, wire.ProcedureGetPort
		call.Arguments = wire.GetPortArguments(wire.ProgramMount, wire.VersionMount)
		return "GETPORT", call, wire.ParsePort
	}
	call.Version, call.Procedure = wire.VersionRPCBind, wire.ProcedureGetAddress
	call.Arguments = wire.GetAddressArguments(wire.ProgramMount, wire.VersionMount, "tcp6")
	return "GETADDR", call, wire.ParseAddress
}

// nfsserver serves folders over NFSv3 on one TCP port, the MOUNT protocol too.
// Tests run several of them as a cluster of NFS servers: file handles are made of
// paths, so that each of them knows the handles of the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-git/go-billy/v5"
	nfs "github.com/willscott/go-nfs"
)

func main() {
	var also shares
	listen := flag.String("listen", "", "address and port to serve on")
	folder := flag.String("folder", "", "folder to serve")
	export := flag.String("export", "/export", "path that clients mount")
	flag.Var(&also, "also", "EXPORT=FOLDER: one more; may be repeated")
	flag.Parse()
	all := shares{}
	err := all.Set(*export + "=" + *folder)
	if err == nil {
		err = serve(*listen, append(all, also...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(listen string, all shares) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for _, s := range all {
		fmt.Println("serving", s.export, "on", listener.Addr())
	}
	return nfs.Serve(listener, &handler{all})
}

// handler has no state: what it needs of a file is in its handle.
type handler struct{ shares shares }

func (h *handler) Mount(_ context.Context, _ net.Conn, request nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	for _, s := range h.shares {
		if string(request.Dirpath) == s.export {
			return nfs.MountStatusOk, s.folder, []nfs.AuthFlavor{nfs.AuthFlavorNull, nfs.AuthFlavorUnix}
		}
	}
	return nfs.MountStatusErrNoEnt, nil, nil
}

func (h *handler) Change(f billy.Filesystem) billy.Change {
	_, s := h.shares.of(f)
	return s.folder
}

func (h *handler) FSStat(_ context.Context, f billy.Filesystem, stat *nfs.FSStat) error {
	_, s := h.shares.of(f)
	return fillStat(s.path, stat)
}

// maxHandle is the limit of NFSv3 (RFC 1813, NFS3_FHSIZE).
const maxHandle = 64

func (h *handler) ToHandle(f billy.Filesystem, path []string) []byte {
	i, _ := h.shares.of(f)
	handle := []byte(fmt.Sprintf("%c/%s", 'a'+i, strings.Join(path, "/")))
	if len(handle) > maxHandle {
		return nil
	}
	return handle
}

func (h *handler) FromHandle(handle []byte) (billy.Filesystem, []string, error) {
	name, path, ok := strings.Cut(string(handle), "/")
	if !ok || len(name) != 1 || int(name[0]-'a') >= len(h.shares) {
		return nil, nil, errors.New("the handle is of another server")
	}
	return h.shares[name[0]-'a'].folder, strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), nil
}

func (h *handler) InvalidateHandle(billy.Filesystem, []byte) error { return nil }

func (h *handler) HandleLimit() int { return 1 << 20 }

// nfsserver serves one folder over NFSv3 on one TCP port, the MOUNT protocol too.
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
	"github.com/go-git/go-billy/v5/osfs"
	nfs "github.com/willscott/go-nfs"
)

func main() {
	listen := flag.String("listen", "", "address and port to serve on")
	folder := flag.String("folder", "", "folder to serve")
	export := flag.String("export", "/export", "path that clients mount")
	flag.Parse()
	if err := serve(*listen, *folder, *export); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(listen, folder, export string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("serving", export, "on", listener.Addr())
	return nfs.Serve(listener, &handler{export: export, folder: changeable{osfs.New(folder)}, folderPath: folder})
}

// handler has no state: what it needs of a file is in its handle.
type handler struct {
	export     string
	folder     billy.Filesystem
	folderPath string
}

func (h *handler) Mount(_ context.Context, _ net.Conn, request nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	if string(request.Dirpath) != h.export {
		return nfs.MountStatusErrNoEnt, nil, nil
	}
	return nfs.MountStatusOk, h.folder, []nfs.AuthFlavor{nfs.AuthFlavorNull, nfs.AuthFlavorUnix}
}

func (h *handler) Change(billy.Filesystem) billy.Change { return h.folder.(changeable) }

func (h *handler) FSStat(_ context.Context, _ billy.Filesystem, stat *nfs.FSStat) error {
	return fillStat(h.folderPath, stat)
}

// maxHandle is the limit of NFSv3 (RFC 1813, NFS3_FHSIZE).
const maxHandle = 64

func (h *handler) ToHandle(_ billy.Filesystem, path []string) []byte {
	handle := []byte("/" + strings.Join(path, "/"))
	if len(handle) > maxHandle {
		return nil
	}
	return handle
}

func (h *handler) FromHandle(handle []byte) (billy.Filesystem, []string, error) {
	text, ok := strings.CutPrefix(string(handle), "/")
	if !ok {
		return nil, nil, errors.New("the handle is of another server")
	}
	return h.folder, strings.FieldsFunc(text, func(r rune) bool { return r == '/' }), nil
}

func (h *handler) InvalidateHandle(billy.Filesystem, []byte) error { return nil }

func (h *handler) HandleLimit() int { return 1 << 20 }

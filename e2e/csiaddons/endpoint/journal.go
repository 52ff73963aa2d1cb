package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// journal writes a line for each call of the fence service, when it has ended, for
// timelines. Endpoints share the file: a line is one write at its end.
type journal struct{ file, driver, node string }

func (j journal) record(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began := time.Now()
	answer, err := handler(ctx, req)
	if _, ok := verbs[call(info)]; ok && j.file != "" {
		j.write(began, call(info), req, err)
	}
	return answer, err
}

func (j journal) write(began time.Time, call string, req any, err error) {
	line := fmt.Sprintf("%s %s %s %s", began.UTC().Format("15:04:05.000"), j.driver, j.node, call)
	if r, ok := req.(request); ok {
		line += " " + r.GetParameters()["clusterID"]
	}
	if r, ok := req.(interface{ GetCidrs() []*fence.CIDR }); ok {
		for _, c := range r.GetCidrs() {
			line += " " + c.GetCidr()
		}
	}
	line += fmt.Sprintf(": %s %s after %s\n", status.Code(err), strings.ReplaceAll(status.Convert(err).Message(), "\n", " "), time.Since(began).Round(time.Millisecond))
	file, failed := os.OpenFile(j.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if failed == nil {
		_, failed = file.WriteString(line)
		failed = errors.Join(failed, file.Close())
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "writing the journal:", failed)
	}
}

// call is the last part of a method's name.
func call(info *grpc.UnaryServerInfo) string { return path.Base(info.FullMethod) }

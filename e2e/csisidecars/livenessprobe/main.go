// livenessprobe answers a kubelet's HTTP probe by a CSI driver's Probe, for pods that
// expect Kubernetes' program of this name. It has those of its flags that Longhorn passes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	address := flag.String("csi-address", "/run/csi/socket", "socket of the CSI driver")
	port := flag.String("health-port", "9808", "TCP port of /healthz")
	timeout := flag.Duration("probe-timeout", time.Second, "time that the driver has to answer")
	flag.Parse()
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), *timeout)
		defer cancel()
		if err := probe(ctx, *address); err != nil {
			klog.ErrorS(err, "The driver is not healthy")
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	fmt.Fprintln(os.Stderr, "error:", http.ListenAndServe(":"+*port, nil))
	os.Exit(1)
}

func probe(ctx context.Context, address string) error {
	conn, err := connection.ConnectWithoutMetrics(ctx, address)
	if err != nil {
		return fmt.Errorf("connecting to the driver: %w", err)
	}
	defer conn.Close()
	ready, err := rpc.Probe(ctx, conn)
	if err == nil && !ready {
		err = errors.New("the driver is not ready")
	}
	return err
}

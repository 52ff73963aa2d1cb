// instances answers where Longhorn's instance managers and share managers would, for
// the simulated pods of a cluster. All of them are in this one process, told apart by
// the address that is called: the machine it runs on has to take every address of
// simulated pods for its own. An address answers while a running pod has it.
//
// Engines and replicas are names that are running or not. No data is stored.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	"github.com/longhorn/types/pkg/generated/smrpc"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` that names the cluster")
	namespace := flag.String("namespace", "longhorn-system", "Longhorn's namespace")
	engine := flag.String("print-engine", "", "print what the engine of a `version` answers to \"longhorn version\", and end")
	flag.Parse()
	if *engine != "" {
		if err := printEngine(os.Stdout, *engine); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, namespace string) error {
	pods := newPods()
	if err := pods.follow(ctx, kubeconfig, namespace); err != nil {
		return err
	}
	failed := make(chan error, 1)
	for port, register := range map[int]func(*grpc.Server){
		8500: func(s *grpc.Server) { rpc.RegisterProcessManagerServiceServer(s, processes{}) },
		8501: func(s *grpc.Server) { rpc.RegisterProxyEngineServiceServer(s, proxy{pods: pods}) },
		8503: func(s *grpc.Server) { rpc.RegisterInstanceServiceServer(s, instances{pods: pods}) },
		9600: func(s *grpc.Server) { smrpc.RegisterShareManagerServiceServer(s, share{}) },
	} {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		server := grpc.NewServer(grpc.UnaryInterceptor(answer))
		register(server)
		healthpb.RegisterHealthServer(server, healthy{})
		go func() { failed <- server.Serve(podListener{Listener: listener, pods: pods}) }()
	}
	log.Print("serving")
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		return nil
	}
}

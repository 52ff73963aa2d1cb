// grpc_health_probe asks a server for its health, as the program of this name that
// instance managers run: grpc_health_probe -addr HOST:PORT.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// timeout is the real program's.
const timeout = 2 * time.Second

func main() {
	address := flag.String("addr", "", "address of the server")
	flag.Parse()
	if err := probe(*address); err != nil {
		log.Fatal(err)
	}
}

func probe(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil && answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		log.Fatalf("%s is %s", address, answer.Status)
	}
	return err
}

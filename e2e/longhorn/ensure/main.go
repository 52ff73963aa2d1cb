// ensure builds longhorn-manager, Kubernetes' attacher, and our stand-in for Longhorn's pods
// into the cache unless they are there, and prints the folder. It runs in the folder of
// this module:
//
//	go -C e2e/longhorn run ./ensure
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	// An interrupted build removes what it has begun.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := ensure(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

func ensure(ctx context.Context) (string, error) {
	dir, version, err := locate()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fmt.Fprintf(os.Stderr, "building longhorn-manager %s and what runs beside it (six minutes on two cores, once)\n", version)
	return dir, build(ctx, dir, version)
}

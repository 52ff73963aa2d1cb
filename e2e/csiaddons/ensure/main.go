// ensure builds csi-addons' manager and sidecar, and our endpoint, into the cache
// unless they are there, and prints the folder. It runs in the folder of this module:
//
//	go -C e2e/csiaddons run ./ensure
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	// An interrupted build is removed, too.
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
	fmt.Fprintf(os.Stderr, "building csi-addons %s (a few minutes, once)\n", version)
	return dir, build(ctx, dir)
}

// ensure builds CoreDNS into the cache unless it is there, and prints where it
// is. It runs in the folder of this module:
//
//	go -C e2e/coredns run ./ensure
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
	binary, err := ensure(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(binary)
}

func ensure(ctx context.Context) (string, error) {
	binary, version, err := locate()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	fmt.Fprintf(os.Stderr, "building CoreDNS %s (a minute or two, once)\n", version)
	return binary, build(ctx, binary)
}

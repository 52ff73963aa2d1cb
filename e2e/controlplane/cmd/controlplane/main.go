// controlplane builds and runs a real Kubernetes control plane for tests and
// demos, with simulated nodes, on this machine only and without root.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const usage = `controlplane builds and runs a real Kubernetes control plane for tests and demos.

Usage:
  controlplane build              build what is missing into the cache (minutes, once)
  controlplane build ADDON        build coredns, csiaddons or another addon into the cache, and print its folder
  controlplane run --dir DIR      build if needed, then run until Ctrl-C

"controlplane run -h" lists its flags. The cache is in $FAIRLEAD_CACHE, or
fairlead below $XDG_CACHE_HOME or ~/.cache.
`

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func dispatch(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("say what to do: build or run")
	}
	ctx, stop := untilAsked()
	defer stop()
	switch args[0] {
	case "build":
		return build(ctx, args[1:])
	case "run":
		return run(ctx, stop, args[1:])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("there is no command %q", args[0])
	}
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fairlead-io/fairlead/e2e/controlplane/binaries"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// heartbeat is short enough that nobody thinks a build hangs, and that no CI
// system takes it for dead.
const heartbeat = 15 * time.Second

func build(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("controlplane build", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	report := progress.New(os.Stderr, heartbeat)
	if flags.NArg() == 1 {
		folder, err := binaries.Addon(ctx, flags.Arg(0), report)
		if err == nil {
			fmt.Println(folder)
		}
		return err
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(1))
	}
	_, err := binaries.ControlPlane(ctx, report)
	return err
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

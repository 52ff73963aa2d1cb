package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// command is a program and its arguments. The program carries out a fence, such as cutting a node's
// storage link, and gets the CIDRs as further arguments.
type command string

// run repeats a command for the same CIDRs, because csi-addons repeats calls: the command must succeed again.
func (c command) run(ctx context.Context, cidrs []string) error {
	words := strings.Fields(string(c))
	if len(words) == 0 {
		return nil
	}
	out, err := exec.CommandContext(ctx, words[0], append(words[1:], cidrs...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", c, strings.Join(cidrs, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// command that carries out what the block list only records, such as cutting a node's
// storage link: a program and its arguments. It gets the CIDRs as further arguments.
type command string

// run must succeed again for CIDRs that it has had before: csi-addons repeats calls.
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

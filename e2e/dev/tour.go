package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// tourist says what is done, runs kubectl, and shows both command and answer.
type tourist struct {
	out     io.Writer
	step    int
	kubectl func(ctx context.Context, stdin string, args ...string) (string, error)
	// kubeconfig of the cluster, for fairlead itself.
	kubeconfig string
	// err is the first surprise; the tour goes on to the end of its step.
	err error
}

func newTour(out io.Writer) *tourist { return &tourist{out: out} }

func (t *tourist) say(text string) {
	t.step++
	fmt.Fprintf(t.out, "\n== %d. %s\n", t.step, text)
}

func (t *tourist) note(format string, args ...any) {
	fmt.Fprintf(t.out, "   "+format+"\n", args...)
}

// run shows a command that succeeds.
func (t *tourist) run(ctx context.Context, args ...string) {
	if _, err := t.show(ctx, args...); err != nil {
		t.fail(fmt.Errorf("this should have worked: %w", err))
	}
}

// fairlead shows a command of Fairlead's own; one that waits ends with code 2.
func (t *tourist) fairlead(ctx context.Context, args ...string) {
	fmt.Fprintf(t.out, "$ fairlead %s\n", strings.Join(args, " "))
	binary, err := fairleadBinary()
	if err != nil {
		t.fail(err)
		return
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+t.kubeconfig)
	cmd.Stdout, cmd.Stderr = t.out, t.out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 2 {
		t.note("(exit code 2: some of it would wait)")
	} else if err != nil {
		t.fail(fmt.Errorf("this should have worked: fairlead %s: %w", strings.Join(args, " "), err))
	}
}

// refused shows a command that Fairlead refuses as invalid.
func (t *tourist) refused(ctx context.Context, args ...string) {
	t.refusedWith(ctx, "is invalid", args...)
}

// refusedWith shows a command that Fairlead refuses with these words.
func (t *tourist) refusedWith(ctx context.Context, words string, args ...string) {
	out, err := t.show(ctx, args...)
	if err == nil || !strings.Contains(out, words) {
		t.fail(fmt.Errorf("this should have been refused: kubectl %s", strings.Join(args, " ")))
	}
}

func (t *tourist) show(ctx context.Context, args ...string) (string, error) {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, " {}\\\"") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	fmt.Fprintf(t.out, "$ kubectl %s\n", strings.Join(words, " "))
	out, err := t.kubectl(ctx, "", args...)
	fmt.Fprint(t.out, out)
	if out != "" && !strings.HasSuffix(out, "\n") {
		fmt.Fprintln(t.out)
	}
	return out, err
}

func (t *tourist) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// until waits for something that takes a moment.
func (t *tourist) until(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

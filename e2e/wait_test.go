package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventually waits until check returns nil, and fails with its last error.
//
// within is the longest time on an idle machine; a busy machine gets three times as long.
// Tests that promise a duration measure it themselves (whileQuiet).
func (c *cluster) eventually(what string, within time.Duration, check func() error) {
	c.t.Helper()
	within *= 3
	deadline := time.Now().Add(within)
	for {
		began := time.Now()
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		// Checks read several kinds, some through kubectl: there is no one watch for them. They take half of the time at most.
		time.Sleep(max(50*time.Millisecond, time.Since(began)))
	}
}

// waitIs waits until a value is the one wanted.
func (c *cluster) waitIs(what string, within time.Duration, want any, value func() any) {
	c.t.Helper()
	c.eventually(what, within, func() error {
		if got := value(); !equality.Semantic.DeepEqual(got, want) {
			return fmt.Errorf("is %v, want %v", got, want)
		}
		return nil
	})
}

// waitHas waits until a text has all the parts.
func (c *cluster) waitHas(what string, within time.Duration, text func() string, parts ...string) {
	c.t.Helper()
	c.eventually(what, within, func() error { return lacks(text(), parts...) })
}

// waitPrints waits until kubectl prints all the parts.
func (c *cluster) waitPrints(within time.Duration, args []string, parts ...string) {
	c.t.Helper()
	c.waitHas("kubectl "+strings.Join(args, " "), within, func() string { return c.kubectl(args...) }, parts...)
}

// lacks names the parts that a text does not have.
func lacks(text string, parts ...string) error {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return strings.Contains(text, p) })
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%q are missing in:\n%s", parts, text)
}

// has fails the test unless a text has all the parts.
func (c *cluster) has(text string, parts ...string) {
	c.t.Helper()
	if err := lacks(text, parts...); err != nil {
		c.t.Error(err)
	}
}

// waitGone waits until an object does not exist.
func (c *cluster) waitGone(o client.Object) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("deletion of %T %s", o, o.GetName()), 30*time.Second, func() error {
		if err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it exists: %w", err)
		}
		return nil
	})
}

// comesToRest waits until a text stays the same for so long. Nothing announces that no write follows.
func (c *cluster) comesToRest(what string, long time.Duration, text func() string) {
	c.t.Helper()
	c.eventually("no more writes to "+what, 20*time.Second, func() error {
		before := text()
		time.Sleep(long)
		if after := text(); after != before {
			return fmt.Errorf("changed from\n%s\nto\n%s", before, after)
		}
		return nil
	})
}

// applyExamples applies files of docs/examples, and wants no word of a problem.
func (c *cluster) applyExamples(names ...string) {
	c.t.Helper()
	for _, name := range names {
		out := c.kubectl("apply", "-f", "../docs/examples/"+name+".yaml")
		c.t.Logf("%s:\n%s", name, out)
		for _, problem := range []string{"has no effect", "unknown", "there is no"} {
			if strings.Contains(out, problem) {
				c.t.Errorf("example %s: %s", name, out)
			}
		}
	}
}

// kubectl runs a command that must succeed.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.tryKubectl(args...)
	c.must(err)
	return out
}

// tryKubectl runs a command. A read is repeated if the API server can't be reached, as on a busy machine.
func (c *cluster) tryKubectl(args ...string) (string, error) {
	c.t.Helper()
	reads := slices.ContainsFunc(args, func(arg string) bool { return arg == "get" || arg == "describe" || arg == "auth" })
	for again := 2; ; again-- {
		out, err := c.Kubectl(c.t.Context(), "", args...)
		unreached := err != nil && slices.ContainsFunc([]string{"TLS handshake timeout", "connection refused", "EOF"}, func(text string) bool { return strings.Contains(out, text) })
		if !reads || !unreached || again == 0 {
			return out, err
		}
		c.t.Logf("tried again: %v", err)
		time.Sleep(time.Second) // the API server gets time to recover
	}
}

// field of an object in the storage system's namespace.
func (c *cluster) field(resource, name, jsonpath string) string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", resource, name, "-o", "jsonpath="+jsonpath)
}

// refused runs a command that must fail, and returns its output.
func (c *cluster) refused(args ...string) string {
	c.t.Helper()
	out, err := c.Kubectl(c.t.Context(), "", args...)
	if err == nil {
		c.t.Fatalf("kubectl %s should have been refused:\n%s", strings.Join(args, " "), out)
	}
	return out
}

package e2e

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/typed"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Both tests type the commands of pages as a reader does. See package typed for what is typed, and how output is compared.
// They take two minutes each, mostly waiting.

func TestDocumentedCommandsWorkAsTyped(t *testing.T) {
	t.Parallel()
	newShell(t).types(typed.Longhorn)
}

func TestDocumentedFencingCommandsWorkAsTyped(t *testing.T) {
	t.Parallel()
	newShell(t).types(typed.Fencing)
}

// shell is a reader's: bash in a folder with the files that the pages name.
type shell struct {
	*testing.T
	in  io.Writer
	out *bufio.Reader
}

// prepare has a stand-in for make: programs are built already, and the pages share one cluster. It restarts Deployments
// at most once a second, as kubectl asks for: it tells two restarts apart by a time in whole seconds.
const prepare = `trap 'failed=$?' ERR
kubectl() {
  case "$*" in
    *"rollout restart"*)
      while [ "$(date +%s)" = "${restarted:-}" ]; do sleep 0.1; done
      command kubectl "$@" && restarted=$(date +%s) ;;
    *) command kubectl "$@" ;;
  esac
}
make() {
  case "$1" in
    up) test -e .dev/kubeconfig || env "${@:2}" "$FAIRLEAD_DEV" up ;;
    down|build) ;;
    *) echo "make $*: not known here"; return 2 ;;
  esac
}
`

func newShell(t *testing.T) *shell {
	t.Helper()
	root, err := filepath.Abs("..")
	must.Do(t, err)
	must.Do(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	folder, err := os.MkdirTemp(filepath.Join(root, "bin"), "typed-") // below the checkout: dev looks for it
	must.Do(t, err)
	for _, name := range []string{"docs", "manifests", "Makefile"} {
		must.Do(t, os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)))
	}
	env := append(os.Environ(), "FAIRLEAD_DEV="+absolute(t, "FAIRLEAD_DEV"), "FAIRLEAD_BINARY="+absolute(t, "FAIRLEAD_BINARY"),
		"KUBECONFIG=", "KUBECACHEDIR="+filepath.Join(folder, "cache"), "KUBECTL_APPLYSET=", "TERM=dumb")
	down := exec.Command(absolute(t, "FAIRLEAD_DEV"), "down")
	down.Dir, down.Env = folder, env
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the cluster's log:\n%s", endOf(filepath.Join(folder, ".dev", "log"), 6000))
		}
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("make down: %v\n%s", err, out)
		}
		must.Do(t, os.RemoveAll(folder))
	})
	bash := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile")
	bash.Dir, bash.Env = folder, env
	in, err := bash.StdinPipe()
	must.Do(t, err)
	out, w, err := os.Pipe()
	must.Do(t, err)
	bash.Stdout, bash.Stderr = w, w
	must.Do(t, bash.Start())
	must.Do(t, w.Close())
	t.Cleanup(func() {
		_ = in.Close()
		_ = bash.Wait() // its status is that of the last command
	})
	s := &shell{t, in, bufio.NewReader(out)}
	s.run(prepare)
	return s
}

func absolute(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s names no program: run make test-e2e", variable)
	}
	path, err := filepath.Abs(path)
	must.Do(t, err)
	return path
}

const endMark = "--end of a typed command--"

// run types commands and returns their output and the exit code of the last one that failed.
func (s *shell) run(command string) (string, string) {
	s.Helper()
	_, err := fmt.Fprintf(s.in, "failed=0\n{\n%s\n} </dev/null\necho; echo '%s' $failed\n", command, endMark)
	must.Do(s, err)
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if code, ended := strings.CutPrefix(line, endMark); ended {
			return strings.TrimSuffix(out.String(), "\n"), strings.TrimSpace(code)
		}
		out.WriteString(line)
		if err != nil {
			s.Fatalf("typing %s: %v\n%s", command, err, out.String())
		}
	}
}

// types the commands of pages, all in one shell on one cluster.
func (s *shell) types(pages []typed.Page) {
	s.Helper()
	for _, p := range pages {
		path := filepath.Join("..", p.Name)
		page, err := os.ReadFile(path)
		must.Do(s, err)
		commands, err := typed.Commands(string(page))
		must.Do(s, err)
		if out, code := s.run(cmp.Or(p.Before, ":")); code != "0" {
			s.Fatalf("before %s: exit code %s\n%s", p.Name, code, out)
		}
		recorded := string(page)
		for _, c := range commands {
			recorded = s.follow(p.Name, recorded, c)
		}
		if recorded != string(page) {
			must.Do(s, os.WriteFile(path, []byte(recorded), 0o644))
		}
	}
}

// looks only look: a reader looks again until the cluster is as the page shows it.
var looks = regexp.MustCompile(`^(kubectl (-n \S+ )?get|fairlead (status|volumes|settings|plan|fences)|api_curl -s \$api/)`)

const lookFor = time.Minute

// settleFor is how long the cluster takes to be as a page will show it, with UPDATE=1.
const settleFor = 6 * time.Second

// follow types a command of a page and wants what the page shows. With UPDATE=1 it returns the page with what is
// printed instead.
func (s *shell) follow(name, page string, c typed.Command) string {
	s.Helper()
	var out string
	try := func() error {
		var code string
		out, code = s.run(c.Typed())
		switch {
		case c.Shows && !typed.Matches(c.Wanted(), out):
			return errors.New("the page shows other output")
		case !c.Shows && code != "0":
			return errors.New("exit code " + code)
		}
		return nil
	}
	update := os.Getenv("UPDATE") != ""
	within := lookFor
	if update {
		within = settleFor
	}
	err := try()
	for end := time.Now().Add(within); err != nil && looks.MatchString(c.Typed()) && time.Now().Before(end); err = try() {
		time.Sleep(200 * time.Millisecond)
	}
	s.Logf("%s:%d: $ %s\n%s", name, c.Line, c.Typed(), out)
	switch {
	case err != nil && c.Shows && update:
		return c.Record(page, out)
	case err != nil:
		s.Errorf("%s:%d: $ %s: %v\nthe page shows:\n%s\nprinted:\n%s", name, c.Line, c.Typed(), err, c.Wanted(), out)
	}
	return page
}

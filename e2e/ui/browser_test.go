package ui

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for the page; the machine may be busy.
const patience = 60 * time.Second

var cluster string // the program of the stand-in

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if cluster = os.Getenv("FAIRLEAD_UICLUSTER"); cluster != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "ui")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	cluster = filepath.Join(folder, "uicluster")
	build := exec.Command("go", "build", "-o", cluster, "./uicluster")
	build.Dir = ".." // the module of the test bed
	if output, err := build.CombinedOutput(); err != nil {
		panic(string(output))
	}
	return m.Run()
}

// chromium on PATH; "" if there is none.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// stage is a browser beside a running `fairlead ui`.
type stage struct {
	context.Context
	t      *testing.T
	link   string
	orders io.Writer
	stop   func()
}

// start opens nothing yet: the link is unused.
func start(t *testing.T) *stage {
	t.Helper()
	program := chromium()
	if program == "" {
		t.Skip("no Chromium is installed: the page is not tested in a browser")
	}
	s := &stage{t: t}
	s.runPage()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WindowSize(1280, 900),
		chromedp.Flag("no-sandbox", true), // CI runs as root
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	s.Context, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	s.must(chromedp.Do(s)) // starts the browser, which lives as long as this context
	return s
}

// runPage starts the page, and reads the link.
func (s *stage) runPage() {
	s.t.Helper()
	page := exec.Command(cluster)
	orders, err := page.StdinPipe()
	s.must(err)
	out, err := page.StdoutPipe()
	s.must(err)
	page.Stderr = os.Stderr
	s.must(page.Start())
	s.orders = orders
	s.stop = func() { _ = orders.Close(); _ = page.Process.Kill(); _ = page.Wait() }
	s.t.Cleanup(s.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link, ok := strings.CutPrefix(lines.Text(), "Open "); ok {
			s.link = link
			return
		}
	}
	s.t.Fatal("fairlead ui has ended without a link")
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// do runs actions in the browser.
func (s *stage) do(actions ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s, patience)
	defer cancel()
	s.must(chromedp.Do(ctx, actions...))
}

// order changes the cluster.
func (s *stage) order(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.orders, text+"\n")
	s.must(err)
}

// path of a view on the page's address.
func (s *stage) path(path string) string {
	address, _, _ := strings.Cut(s.link, "/?token=")
	return address + path
}

func (s *stage) goTo(path string) { s.t.Helper(); s.do(chromedp.Navigate(s.path(path))) }

// get runs an action that has a result.
func get[T any](s *stage, action chromedp.Action[T]) T {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	s.must(err)
	return value
}

// js evaluates an expression.
func js[T any](s *stage, expression string) T {
	s.t.Helper()
	return get(s, chromedp.Evaluate[T](expression))
}

// until waits for a condition in the page. Each look is an evaluation of its own: chromedp.Poll stays in the document it
// began in, and fails where the browser has just replaced that.
func (s *stage) until(condition string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s, patience)
	defer cancel()
	for {
		met, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if met {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatalf("waiting for %s: %v; the page says:\n%s", condition, err, js[string](s, `document.body.innerText`))
		}
	}
}

// sees waits for a text in the page.
func (s *stage) sees(text string) {
	s.t.Helper()
	s.until(`document.body && document.body.innerText.includes(` + quoted(text) + `)`)
}

func quoted(text string) string { return "`" + strings.ReplaceAll(text, "`", "\\`") + "`" }

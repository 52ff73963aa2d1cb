package ui

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const hostile = `pvc-"><script>document.title="owned"</script>`

// views with a text of each. The screenshot has the name.
var views = []struct{ name, path, text string }{
	{"overview", "/", "Settings that are not applied"},
	{"volumes", "/volumes", "of 124 RWX volumes"},
	{"volume", "/volumes/pvc-5e0c7d1a-documents", "Data path"},
	{"volume-wrong", "/volumes/pvc-a", "Multus reports 10.1.0.7"},
	{"volume-hostile", "/volumes/" + url.PathEscape(hostile), "no Service and no server"},
	{"settings", "/settings", "What would a value do?"},
	{"setting", "/settings/priority-class", "scale down the workloads"},
	{"plan", "/plan?name=storage-network-for-rwx-volume-enabled&value=false", "To make the change, type:"},
	{"plan-empty", "/plan", "What would a value do?"},
	{"plan-refused", "/plan?name=priority-class&value=missing", "in this cluster: none"},
	{"rollouts", "/rollouts", "3 of 12"},
	{"timeline", "/timeline", "Timeline"},
	{"fences", "/fences", "of 61 nodes"},
	{"fence", "/fences/node-3", "its taint to be removed"},
	{"nfs", "/nfs", "storage/files"},
	{"nfs-service", "/nfs/storage/files", "worker-00"},
	{"missing", "/volumes/pvc-x", "did you mean"},
}

// TestEveryView looks at every view in both themes and two widths. FAIRLEAD_SCREENSHOTS is a folder for pictures.
func TestEveryView(t *testing.T) {
	s := start(t)
	var problems []string
	listen(s, &problems)
	s.do(chromedp.Navigate(s.link))
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 400} {
			_, err := chromedp.Call(s, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
			})
			s.must(err)
			s.do(chromedp.EmulateViewport(width, 900))
			for _, v := range views {
				s.goTo(v.path)
				s.sees(v.text)
				if wide := js[int64](s, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s is %d wide in a window of %d", v.path, wide, width)
				}
				if hidden := js[int64](s, `[...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1).length`); width < 1000 && hidden > 0 {
					t.Errorf("%s hides columns of %d tables in a window of %d", v.path, hidden, width)
				}
				if title := js[string](s, `document.title`); title == "owned" {
					t.Errorf("%s ran a script from the name of a volume", v.path)
				}
				s.picture(v.name, theme, width)
			}
		}
	}
	if len(problems) > 0 {
		t.Errorf("the console says:\n%s", strings.Join(problems, "\n"))
	}
}

func (s *stage) picture(name, theme string, width int64) {
	folder := os.Getenv("FAIRLEAD_SCREENSHOTS")
	if folder == "" {
		return
	}
	png := get(s, chromedp.FullScreenshot(100))
	file := name + "-" + theme
	if width < 1000 {
		file += "-narrow"
	}
	s.must(os.WriteFile(filepath.Join(folder, file+".png"), png, 0o644))
}

func TestViewFollowsTheClusterAndKeepsFocus(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.goTo("/volumes?q=pvc-a")
	s.sees("have 10.1.0.9, and Multus reports 10.1.0.7")
	s.do(chromedp.Focus(`#live a[href="/volumes/pvc-a"]`))
	s.order("mend")
	s.until(`!document.body.innerText.includes("10.1.0.9") && document.querySelector("#live .state").innerText === "ok"`)
	if focus := js[string](s, `document.activeElement.getAttribute("href") || ""`); focus != "/volumes/pvc-a" {
		t.Errorf("the focus is on %q after the change", focus)
	}
}

func TestSelectedTextStays(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.goTo("/volumes/pvc-a")
	s.sees("have 10.1.0.9")
	js[bool](s, `getSelection().selectAllChildren(document.querySelector("#live tbody")), true`)
	s.order("mend")
	for range 3 { // readings
		before := js[string](s, `document.getElementById("freshness").innerText`)
		s.until(`document.getElementById("freshness").innerText !== ` + quoted(before))
	}
	if !js[bool](s, `document.body.innerText.includes("have 10.1.0.9")`) {
		t.Error("the selected text was replaced")
	}
	js[bool](s, `getSelection().removeAllRanges(), true`)
	s.until(`!document.body.innerText.includes("have 10.1.0.9")`)
}

func TestClusterThatGoesAwayComesBack(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.order("away")
	s.sees("The cluster can't be read since")
	s.sees("Shown is the reading of")
	s.sees("priority-class") // what was read is still there
	s.order("back")
	s.until(`!document.body.innerText.includes("can't be read") && document.body.innerText.includes("Read at")`)
}

func TestEndOfTheCommandIsSaid(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.sees("Overview")
	s.stop()
	s.sees("The connection to fairlead ui is lost.")
}

func TestWrongTokenOpensNothing(t *testing.T) {
	s := start(t)
	s.goTo("/?token=wrong")
	s.sees("The token in this link is wrong, or the link was used already.")
	s.goTo("/volumes")
	s.sees("has not opened the link")
	s.do(chromedp.Navigate(s.link))
	s.sees("Overview")
	if address := js[string](s, `location.href`); strings.Contains(address, "token") {
		t.Errorf("the address is %s", address)
	}
	if cookies := js[string](s, `document.cookie`); cookies != "" {
		t.Errorf("scripts see the cookie %s", cookies)
	}
}

func TestPageIsUsedByKeyboard(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.goTo("/settings")
	s.do(chromedp.KeyEvent(kb.Tab))
	if text := js[string](s, `document.activeElement.innerText`); text != "Skip to the content" {
		t.Errorf("the first stop is %q", text)
	}
	s.do(chromedp.KeyEvent(kb.Enter))
	for _, stop := range []string{"name", "value", "unset"} { // after the skip
		s.do(chromedp.KeyEvent(kb.Tab))
		if id := js[string](s, `document.activeElement.id`); id != stop {
			t.Errorf("the stop is %q, want %q", id, stop)
		}
		if outline := js[string](s, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("the focus on %s can't be seen", stop)
		}
	}
	s.do(chromedp.SendKeys("#name", "storage-network-for-rwx-volume-enabled"), chromedp.SendKeys("#value", "false"+kb.Enter))
	s.do(chromedp.WaitReady(".command code"))
	command := js[string](s, `document.querySelector(".command code").innerText`)
	if want := `kubectl -n longhorn-system patch settings.longhorn.io storage-network-for-rwx-volume-enabled --type merge -p '{"value":"false"}'`; command != want {
		t.Errorf("got %s\nwant %s", command, want)
	}
}

func TestPictureHasWordsForScreenReaders(t *testing.T) {
	s := start(t)
	s.do(chromedp.Navigate(s.link))
	s.goTo("/volumes/pvc-5e0c7d1a-documents")
	s.sees("Data path")
	words := js[string](s, `document.getElementById("picture-desc").textContent`)
	for _, want := range []string{"client", "on node node-4", "on node node-6", "server", "kube-system/storage-net", "team-a/documents-7d9f0"} {
		if !strings.Contains(words, want) {
			t.Errorf("the description does not say %q: %s", want, words)
		}
	}
	unnamed := js[int64](s, `[...document.querySelectorAll("input:not([type=hidden]), select, button, a, progress, [tabindex='0']")].filter(e => !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()).length`)
	if unnamed != 0 {
		t.Errorf("%d controls have no name", unnamed)
	}
}

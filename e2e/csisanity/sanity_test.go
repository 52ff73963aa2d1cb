// Package csisanity runs csi-sanity, the conformance tests of the CSI spec, against
// Fairlead's driver (e2e/csidriver). It is a module of its own: csi-sanity needs a
// newer CSI spec than the product can use.
package csisanity

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// passing is how many of csi-sanity's 103 specs pass. The others ask for RPCs that the
// driver does not advertise, and are skipped: fewer would mean a capability that was lost.
const passing = 40

var _ = ginkgo.ReportAfterSuite("specs that ran", func(r ginkgo.Report) {
	if n := r.SpecReports.WithLeafNodeType(types.NodeTypeIt).CountWithState(types.SpecStatePassed); n < passing && r.SuiteConfig.FocusStrings == nil {
		ginkgo.Fail(fmt.Sprintf("%d specs passed, and %d are expected", n, passing))
	}
})

// The driver that is tested: FAIRLEAD_CSIDRIVER, or it is built here.
func driver(t *testing.T, dir string) string {
	if binary := os.Getenv("FAIRLEAD_CSIDRIVER"); binary != "" {
		return binary
	}
	binary := filepath.Join(dir, "csidriver")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "./csidriver")
	build.Dir = ".." // the module of the test bed
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the driver: %v\n%s", err, output)
	}
	return binary
}

func TestDriverConformsToTheSpec(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "csi.sock")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(driver(t, dir), "-socket", socket)
	cmd.Stderr = log
	runtime.LockOSThread() // the driver ends with the thread that has started it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the driver did not end cleanly: %v", err)
		}
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the driver's log:\n%s", text)
		}
	}()
	config := sanity.NewTestConfig()
	config.Address = "unix://" + socket
	config.TargetPath = filepath.Join(dir, "mount")
	config.StagingPath = filepath.Join(dir, "staging")
	sanity.Test(t, config)
}

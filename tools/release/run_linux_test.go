package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// confinedRoot is set in the process that confines itself before it becomes the image's program.
const confinedRoot = "RELEASE_TEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(confinedRoot); root != "" {
		fmt.Fprintln(os.Stderr, "confining:", confine(root, os.Args))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// The image's program runs as a pod of the Deployment would run it, but for seccomp and
// cgroups: these are the container runtime's.
func TestImageRunsUnderTheManifestsSecurityContext(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test must be root, to change its root folder and its user")
	}
	checkSecurityContext(t)
	root := unpackedImage(t)
	// A folder that anyone may write to: it is the read-only root that refuses.
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct {
		args, want string
	}{
		{"version", "v1.2.3"},
		{"webhook --help", "--self-signed-secret"},
		{"webhook --config=/nothing.yaml", "/nothing.yaml"},
		{"controller --help", "--inject-ca-from"},
	} {
		output := runConfined(t, root, strings.Fields(run.args))
		if !strings.Contains(output, run.want) {
			t.Errorf("fairlead %s says %q, want %q", run.args, output, run.want)
		}
	}
}

func runConfined(t *testing.T, root string, args []string) string {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Args = append([]string{"/fairlead"}, args...)
	command.Env = []string{confinedRoot + "=" + root}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	output, err := command.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("this machine gives no mount namespace: %v", err)
	}
	if command.ProcessState == nil || command.ProcessState.ExitCode() == 125 || command.ProcessState.ExitCode() < 0 {
		t.Fatalf("fairlead %s: %v\n%s", args, err, output)
	}
	return string(output)
}

// confine gives up what the manifest takes away, and becomes the program. It returns only an error.
func confine(root string, args []string) error {
	runtime.LockOSThread() // prctl is of a thread, and so is what execve keeps
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts private: %w", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	if err := unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("making the root read-only: %w", err)
	}
	status, err := os.Open("/proc/thread-self/status")
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Chroot(root), unix.Chdir("/")); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	for capability := 0; capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// The runtime gives the group root where neither manifest nor image has an entry for the user.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(0), syscall.Setuid(user)); err != nil {
		return fmt.Errorf("becoming user %d: %w", user, err)
	}
	if err := checkConfined(status); err != nil {
		return err
	}
	return syscall.Exec("/fairlead", args, nil)
}

func checkConfined(status io.Reader) error {
	text, err := io.ReadAll(status)
	if err != nil {
		return err
	}
	for _, want := range []string{"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
		if !bytes.Contains(text, []byte(want)) {
			return fmt.Errorf("the process is not confined, it lacks %q:\n%s", want, text)
		}
	}
	if err := os.WriteFile("/tmp/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("writing to the root: %v, want %w", err, unix.EROFS)
	}
	return nil
}

// user is whom the manifests and the image name.
const user = 65532

// checkSecurityContext fails where the manifests ask for other things than confine does.
func checkSecurityContext(t *testing.T) {
	t.Helper()
	for _, name := range []string{"webhook", "controller"} {
		content, err := os.ReadFile(filepath.Join(repository(t), "manifests", "base", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		documents := bytes.Split(content, []byte("\n---\n"))
		deployment, err := yaml.Parse(string(documents[len(documents)-1]))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"spec/template/spec/securityContext":              "runAsNonRoot: true\nrunAsUser: 65532\nseccompProfile:\n  type: RuntimeDefault\n",
			"spec/template/spec/containers/0/securityContext": "allowPrivilegeEscalation: false\nreadOnlyRootFilesystem: true\ncapabilities:\n  drop: [ALL]\n",
		} {
			node, err := deployment.Pipe(yaml.Lookup(strings.Split(path, "/")...))
			if err != nil || node == nil {
				t.Fatalf("%s has no %s (%v)", name, path, err)
			}
			if got, err := node.String(); err != nil || got != want {
				t.Errorf("%s of %s is\n%s(%v), the test runs the image under\n%s", path, name, got, err, want)
			}
		}
	}
}

// unpackedImage returns the folder with the files of an image for this machine.
func unpackedImage(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	extract(t, builtImage(t), root)
	return root
}

func extract(t *testing.T, image v1.Image, root string) {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, header.FileInfo().Mode())
		} else {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, content, header.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

package longhorndev

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loop is a volume's loop device. The engine serves its file; the holder, another process, opens the device.
type loop struct {
	file    *file
	holder  *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
}

// attach makes a loop device of size bytes, and a device node for it.
func attach(name, path string, size int64, e *engine) (*loop, error) {
	folder, err := os.MkdirTemp("", "longhorn-device-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(folder)
	defer unix.Unmount(folder, unix.MNT_DETACH)
	l := &loop{file: &file{engine: e}}
	l.file.size.Store(size)
	if err := serve(l.file, folder); err != nil {
		return nil, err
	}
	if err := l.startHolder(name, path, filepath.Join(folder, fileName)); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *loop) startHolder(arguments ...string) error {
	l.holder = &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{holderName}, arguments...), Stderr: os.Stderr}
	answers, err := l.holder.StdoutPipe()
	if err != nil {
		return err
	}
	if l.orders, err = l.holder.StdinPipe(); err != nil {
		return err
	}
	if err := l.holder.Start(); err != nil {
		return err
	}
	l.answers = bufio.NewReader(answers)
	if err := l.answered(); err != nil {
		return errors.Join(err, l.release())
	}
	return nil
}

// answered waits until the holder has done what it was started or told for.
func (l *loop) answered() error {
	line, err := l.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the holder of the loop device has ended: %w", err)
	}
	if line = strings.TrimSpace(line); line != "" {
		return errors.New(line)
	}
	return nil
}

func (l *loop) resize(size int64) error {
	l.file.size.Store(size)
	if _, err := fmt.Fprintln(l.orders, "resize"); err != nil {
		return err
	}
	return l.answered()
}

func (l *loop) detach(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return l.release()
}

func (l *loop) release() error {
	_ = l.orders.Close()
	return l.holder.Wait()
}

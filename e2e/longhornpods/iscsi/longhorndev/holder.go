package longhorndev

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// holderName is the first argument of a holder, which is the engine's program.
	holderName = "longhorn-device-holder"
	loopMajor  = 7
	// loopAttempts bounds the race with other processes for a free device.
	loopAttempts = 20
)

func init() {
	if len(os.Args) == 4 && os.Args[0] == holderName {
		os.Exit(hold(os.Args[1], os.Args[2], os.Args[3]))
	}
}

// hold keeps a loop device open until the standard input ends, at the latest with the engine.
// The kernel detaches the device when no process has it open.
func hold(volume, path, backing string) int {
	device, err := configure(volume, path, backing)
	if err != nil {
		_ = os.Remove(path)
		report(err)
		return 1
	}
	report(nil)
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		report(unix.IoctlSetInt(device, unix.LOOP_SET_CAPACITY, 0))
	}
	return 0
}

func report(err error) {
	if err == nil {
		fmt.Println()
		return
	}
	fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
}

func configure(volume, path, backing string) (int, error) {
	// os.Open would poll the file, which blocks Go's scheduler.
	file, err := unix.Open(backing, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening the volume's file: %w", err)
	}
	defer unix.Close(file) // the loop device keeps it open
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening /dev/loop-control: %w", err)
	}
	defer unix.Close(control)
	config := unix.LoopConfig{Fd: uint32(file)}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:], loopName(volume))
	for range loopAttempts {
		number, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return 0, fmt.Errorf("looking for a free loop device: %w", err)
		}
		device, err := openNode(path, uint32(number))
		if err != nil {
			return 0, err
		}
		err = unix.IoctlLoopConfigure(device, &config)
		if err == nil {
			return device, nil
		}
		_ = unix.Close(device)
		if !errors.Is(err, unix.EBUSY) {
			return 0, fmt.Errorf("attaching loop device %d: %w", number, err)
		}
	}
	return 0, errors.New("other processes took every free loop device")
}

// openNode makes the device's node under the volume's name, and opens it: the node /dev/loopN may be missing.
func openNode(path string, number uint32) (int, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	if err := unix.Mknod(path, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, number))); err != nil {
		return 0, fmt.Errorf("making %s: %w", path, err)
	}
	device, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	return device, nil
}

// removeStale detaches the loop device that a killed engine left, unless another volume has it now.
func removeStale(volume, path string) error {
	device, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(device)
		info, err := unix.IoctlLoopGetStatus64(device)
		if err == nil && unix.ByteSliceToString(info.File_name[:]) == loopName(volume) {
			_ = unix.IoctlSetInt(device, unix.LOOP_CLR_FD, 0)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// loopName fits into the kernel's 64 bytes.
func loopName(volume string) string {
	name := "longhorn-" + volume
	return name[:min(len(name), unix.LO_NAME_SIZE-1)]
}

package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapCode gives back the pages of the program's own code: starting up runs much
// that never runs again. What does run is mapped again from the page cache, one
// fault at a time. It is only done to what is executable and was never written to;
// where it can't be done, nothing is lost.
func unmapCode() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// address perms offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "r-xp" || fields[5] != program {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		begin, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED)
	}
}

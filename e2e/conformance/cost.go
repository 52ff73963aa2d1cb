package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

var errNoTimes = errors.New("no CPU times: give the number of a running process of this machine, on Linux")

// userHz is how many ticks Linux counts in a second, on all its architectures.
const userHz = 100

// CPU is the time that a process of this machine has used, from /proc/PID/stat (Linux). Divide the difference by the
// reviews in between for the cost of one.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoTimes, err)
	}
	// The second field, the name, may have spaces; it ends with the last parenthesis. utime and stime are fields 14 and 15.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errNoTimes
	}
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errNoTimes, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}

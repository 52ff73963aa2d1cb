package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePort reads the result of GETPORT. 0: the program is not registered.
func ParsePort(results []byte) (uint16, error) {
	d := decoder{rest: results}
	port := d.word()
	if d.err == nil && port > 65535 {
		d.fail(fmt.Errorf("port is %d, more than 65535", port))
	}
	if d.err != nil {
		return 0, d.err
	}
	return uint16(port), nil
}

// ParseAddress reads the port from the result of GETADDR, an address as "::1.8.1" (RFC 5665, section 5.2.3.4:
// the last two numbers are the bytes of the port). 0: the program is not registered.
func ParseAddress(results []byte) (uint16, error) {
	d := decoder{rest: results}
	address := string(d.opaque("the address", 256))
	if d.err != nil || address == "" {
		return 0, d.err
	}
	parts := strings.Split(address, ".")
	if len(parts) < 3 {
		return 0, fmt.Errorf("address %q has no port", address)
	}
	high, highErr := strconv.ParseUint(parts[len(parts)-2], 10, 8)
	low, lowErr := strconv.ParseUint(parts[len(parts)-1], 10, 8)
	if highErr != nil || lowErr != nil {
		return 0, fmt.Errorf("address %q has no port", address)
	}
	return uint16(high<<8 | low), nil
}

// ParseMount reads the result of MNT. The handle is there if the status is OK.
func ParseMount(results []byte) (Status, []byte, error) {
	d := decoder{rest: results}
	status := Status(d.word())
	if d.err != nil || status != OK {
		return status, nil, d.err
	}
	handle := d.opaque("the file handle", MaxHandle3)
	if d.err == nil && len(handle) == 0 {
		d.fail(fmt.Errorf("the file handle is empty"))
	}
	return status, handle, d.err
}

// ParseStatus reads the status with which the results of GETATTR and COMPOUND begin. A COMPOUND has the status of the first
// operation that failed (RFC 7530, section 16.2.3).
func ParseStatus(results []byte) (Status, error) {
	d := decoder{rest: results}
	return Status(d.word()), d.err
}

// ParseExports reads the result of EXPORT: the paths, without the groups of clients that may mount them.
func ParseExports(results []byte) ([]string, error) {
	d := decoder{rest: results}
	var paths []string
	for d.word() != 0 {
		paths = append(paths, string(d.opaque("the path", maxPath)))
		for d.word() != 0 {
			d.opaque("the group", maxGroup)
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return paths, nil
}

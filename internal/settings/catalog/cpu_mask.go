package catalog

import (
	"math/big"
	"strconv"
	"strings"
)

// maxCPU is the highest CPU that Longhorn accepts. Source: longhorn-manager types/setting.go.
const maxCPU = 1023

const cpuMaskForm = "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"

// normalizeCPUMask returns a mask without leading zeros, in lower case, which every version accepts:
// versions before 1.12 do not accept lists. Longhorn's parser ignores brackets and signs; Fairlead refuses these.
func normalizeCPUMask(value string) (string, error) {
	value = strings.TrimSpace(value)
	mask, digits := new(big.Int), strings.ToLower(value)
	if strings.HasPrefix(digits, "0x") {
		digits = digits[len("0x"):]
		// Parsing of long text would take too much time.
		if digits == "" || strings.Trim(digits, "0123456789abcdef") != "" || len(digits) > (maxCPU+1)/4 {
			return "", malformed{form: cpuMaskForm}
		}
		mask.SetString(digits, 16)
	} else if err := addCPUs(mask, value); err != nil {
		return "", err
	}
	if mask.Sign() == 0 {
		return "", malformed{cpuMaskForm, "the mask has no CPU"}
	}
	return "0x" + mask.Text(16), nil
}

// addCPUs adds a list of CPUs and ranges to the mask.
func addCPUs(mask *big.Int, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, validFrom := cpuNumber(first)
		to, validTo := cpuNumber(last)
		if !validFrom || !validTo {
			return malformed{form: cpuMaskForm}
		}
		if from > to {
			return refuse(cpuMaskForm, "range %q is reversed", strings.TrimSpace(item))
		}
		for cpu := from; cpu <= to; cpu++ {
			mask.SetBit(mask, cpu, 1)
		}
	}
	return nil
}

func cpuNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	return int(n), err == nil && n <= maxCPU
}

// CPUMaskTrait is the normal form of the mask of an SPDK daemon. A malformed mask stays unchanged.
func CPUMaskTrait(mask string) string {
	if normal, err := normalizeCPUMask(mask); err == nil {
		return normal
	}
	return mask
}

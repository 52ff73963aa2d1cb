package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// list is the file of all blocked CIDRs, by storage. Several endpoints share it: a
// change is made under a lock, and appears complete or not at all. What is blocked
// once is not blocked twice, so that one driver unblocks what another has blocked,
// as in Ceph.
type list string

func (l list) block(storage string, cidrs []string) error {
	return l.change(storage, func(blocked []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(append(blocked, cidrs...))))
	})
}

// unblock is content with what isn't blocked.
func (l list) unblock(storage string, cidrs []string) error {
	return l.change(storage, func(blocked []string) []string {
		return slices.DeleteFunc(blocked, func(b string) bool { return slices.Contains(cidrs, b) })
	})
}

func (l list) change(storage string, to func([]string) []string) error {
	lock, err := os.OpenFile(string(l)+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the block list's lock: %w", err)
	}
	defer lock.Close() // and unlocked by that
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the block list: %w", err)
	}
	all, err := l.read()
	if err != nil {
		return err
	}
	if all[storage] = to(all[storage]); len(all[storage]) == 0 {
		delete(all, storage)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("writing the block list: %w", err)
	}
	if err := os.WriteFile(string(l)+".new", data, 0o644); err != nil {
		return fmt.Errorf("writing the block list: %w", err)
	}
	if err := os.Rename(string(l)+".new", string(l)); err != nil {
		return fmt.Errorf("replacing the block list: %w", err)
	}
	return nil
}

func (l list) read() (map[string][]string, error) {
	data, err := os.ReadFile(string(l))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the block list: %w", err)
	}
	var all map[string][]string
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the block list: %w", err)
	}
	return all, nil
}

// blocks refuses what isn't a CIDR, and writes each in one way only, so that what
// one has blocked another finds.
func blocks(texts []string) ([]string, error) {
	var cidrs []string
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("invalid CIDR %q", text)
		}
		cidrs = append(cidrs, prefix.Masked().String())
	}
	return cidrs, nil
}

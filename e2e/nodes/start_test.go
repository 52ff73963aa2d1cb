//go:build linux

package nodes

import "testing"

func TestStart(t *testing.T) { start(t) }

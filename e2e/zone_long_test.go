//go:build long

package e2e

func init() { long = true }

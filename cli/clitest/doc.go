// Package clitest is the test kit of the subcommands: an API server that serves discovery and
// reads, golden files, checks of rights and of output.
package clitest

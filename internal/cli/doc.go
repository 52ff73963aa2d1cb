// Package cli is the shared code of the subcommands for people: flags, the connection to a cluster,
// tables and JSON, exit codes. Each subcommand is a package of its own.
package cli

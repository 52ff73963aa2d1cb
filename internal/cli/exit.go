package cli

// ExitCode ends the process with a code and prints nothing more.
type ExitCode int

// Error is empty.
func (ExitCode) Error() string { return "" }

// ExitWaits: a requested change would not be applied now.
const ExitWaits ExitCode = 2

// ExitWrong: something is wrong, and waiting does not repair it.
const ExitWrong ExitCode = 3

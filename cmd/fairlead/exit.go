package main

// exitCode ends the process with a code and without a word: all has been said.
type exitCode int

func (exitCode) Error() string { return "" }

// exitWaits: what was asked about would not be applied now.
const exitWaits exitCode = 2

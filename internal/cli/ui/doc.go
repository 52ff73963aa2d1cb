// Package ui is `fairlead ui`: a page on the loopback address that shows what the other commands print.
// The page only reads, with the rights of the user; it shows a change as the command to type.
package ui
